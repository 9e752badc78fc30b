/*
 * Shared by the tests of the storage: a temporary folder and its contents.
 */
#ifndef MDL_T_UNIT_STORED_H
#define MDL_T_UNIT_STORED_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_strings.h>

#include "storage/storage.h"
#include "t/unit/program.h"
#include "t/unit/tap.h"

#define MIB 1048576

static apr_pool_t *p;
static char folder[256];
static mdl_storage_t *storage;

static inline const char *sha256sum(const char *path)
{
    return output_of(apr_psprintf(p, "sha256sum < '%s' | cut -c 1-64", path), p);
}

static inline apr_status_t commit(mdl_partial_t *partial, const mdl_blob_t *blob)
{
    mdl_partial_commit_t one = {.partial = partial, .blob = blob};

    mdl_partial_commit_all(&one, 1);
    return one.rv;
}

static inline const char *in_folder(const char *name)
{
    return apr_pstrcat(p, folder, "/", name, NULL);
}

static inline int exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static inline int mode_of(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

static inline apr_int64_t size_of(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ? (apr_int64_t)st.st_size : -1;
}

static inline int holds(const char *path, const char *data, apr_size_t length)
{
    char *bytes = malloc(length + 1);
    FILE *file = fopen(path, "rb");
    int same = bytes != NULL && file != NULL && fread(bytes, 1, length + 1, file) == length &&
               memcmp(bytes, data, length) == 0;

    if (file != NULL) {
        fclose(file);
    }
    free(bytes);
    return same;
}

static inline int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = -2; /* "." and ".." */

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static inline int descriptors(void)
{
    return entries("/proc/self/fd");
}

static inline mdl_partial_t *open_partial(const char *id)
{
    mdl_partial_t *partial = NULL;

    mdl_partial_open(&partial, storage, id, NULL, NULL, p);
    return partial;
}

/** Runs the tests in a folder, which they must leave unchanged; main returns the result. */
static inline int test_storage(void (*tests)(void))
{
    const char *tmp = getenv("TMPDIR");
    int before;

    p = tap_begin();
    umask(0);
    apr_snprintf(folder, sizeof folder, "%s/mdl-storage-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        printf("Bail out! no temporary folder\n");
        return 2;
    }
    before = descriptors();
    tests();
    is_int(descriptors(), before, "no descriptor is left open");
    is_int(entries(in_folder("partial")), 0, "no partial file is left");
    if (system(apr_pstrcat(p, "rm -r '", folder, "'", NULL)) != 0) {
        printf("# %s remains\n", folder);
    }
    return tap_end(p);
}

#endif
