#include "storage/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/crypto.h"
#include "base/http/object.h"
#include "base/ulid.h"

#define PREFIX "storage_"
#define LENGTH (sizeof PREFIX - 1 + MDL_ULID_LENGTH)

#define MAX_OBJECT 1024 /* bytes of an identity, with white space behind it */

static const char *identity_path(const char *root, apr_pool_t *p)
{
    return apr_pstrcat(p, root, "/" MDL_STORAGE_IDENTITY_FILE, NULL);
}

apr_status_t mdl_storage_identity(const char *root, const char **identity, apr_pool_t *p)
{
    char text[LENGTH + 1] = "";
    int fd = open(identity_path(root, p), O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0) {
        return mdl_storage_status(errno);
    }
    n = read(fd, text, LENGTH);
    close(fd);
    *identity = apr_pstrdup(p, text);
    return n == (ssize_t)LENGTH && mdl_ulid_valid(PREFIX, text) ? APR_SUCCESS : APR_EINVAL;
}

apr_status_t mdl_storage_objects_identity(mdl_object_store_t *store, const char **identity,
                                          mdl_object_call_t *call, apr_pool_t *p)
{
    apr_size_t length;
    apr_status_t rv = mdl_object_get(store, MDL_STORAGE_IDENTITY_OBJECT, MAX_OBJECT, identity,
                                     &length, call, p);

    if (rv == APR_SUCCESS) {
        *identity = apr_pstrmemdup(p, *identity, length < LENGTH ? length : LENGTH);
    }
    return rv == APR_SUCCESS && !mdl_ulid_valid(PREFIX, *identity) ? APR_EINVAL : rv;
}

apr_status_t mdl_storage_objects_identify(mdl_object_store_t *store, const char *identity,
                                          mdl_object_call_t *call, apr_pool_t *p)
{
    const char *text = apr_pstrcat(p, identity, "\n", NULL);
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_object_body_t body = {.bytes = text, .length = (apr_int64_t)strlen(text)};

    mdl_sha256(text, strlen(text), digest);
    body.sha256 = mdl_hex(digest, sizeof digest, p);
    return mdl_object_put(store, MDL_STORAGE_IDENTITY_OBJECT, &body, call, p);
}

/* Writes the file atomically; a file that another process has written meanwhile stays. */
static apr_status_t identity_write(const char *root, const char *text, apr_pool_t *p)
{
    char *temporary = apr_pstrcat(p, identity_path(root, p), ".XXXXXX", NULL);
    ssize_t length = (ssize_t)strlen(text);
    int fd = mkostemp(temporary, O_CLOEXEC);
    apr_status_t rv;

    if (fd < 0) {
        return mdl_storage_status(errno);
    }
    rv = write(fd, text, (size_t)length) == length ? mdl_storage_sync_file(fd) : APR_ENOSPC;
    close(fd);
    if (rv == APR_SUCCESS && link(temporary, identity_path(root, p)) != 0 && errno != EEXIST) {
        rv = mdl_storage_status(errno);
    }
    unlink(temporary);
    return rv == APR_SUCCESS ? mdl_storage_sync_folder(root) : rv;
}

const char *mdl_storage_new_identity(apr_pool_t *p)
{
    return mdl_ulid(PREFIX, p);
}

apr_status_t mdl_storage_set_identity(const char *root, const char *identity, apr_pool_t *p)
{
    return identity_write(root, apr_pstrcat(p, identity, "\n", NULL), p);
}

apr_status_t mdl_storage_identify(const char *root, const char **identity, apr_pool_t *p)
{
    const char *text = apr_pstrcat(p, mdl_storage_new_identity(p), "\n", NULL);
    apr_status_t rv = identity_write(root, text, p);

    return rv == APR_SUCCESS ? mdl_storage_identity(root, identity, p) : rv;
}

/* Whether a folder has an entry other than "."  and "..". */
static int folder_has_any(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry = NULL;

    if (folder != NULL) {
        do {
            entry = readdir(folder);
        } while (entry != NULL && entry->d_name[0] == '.');
        closedir(folder);
    }
    return entry != NULL;
}

int mdl_storage_has_blobs(const char *root, apr_pool_t *p)
{
    for (const char *digit = MDL_HEX_DIGITS; *digit != '\0'; digit++) {
        if (folder_has_any(apr_psprintf(p, "%s/blobs/%c", root, *digit))) {
            return 1;
        }
    }
    return 0;
}
