#include "storage/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_strings.h>

#include "base/crypto.h"

#define FOLDER_MODE 0750
#define CHECK_NAME  ".check-" /* no partial file's id has a dot */

apr_status_t mdl_storage_status(int error)
{
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
        return APR_ENOSPC;
    }
    return APR_FROM_OS_ERROR(error);
}

apr_status_t mdl_storage_sync_file(int fd)
{
    while (fsync(fd) != 0) {
        if (errno != EINTR) {
            return mdl_storage_status(errno);
        }
    }
    return APR_SUCCESS;
}

apr_status_t mdl_storage_sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    apr_status_t rv;

    if (fd < 0) {
        return mdl_storage_status(errno);
    }
    rv = mdl_storage_sync_file(fd);
    close(fd);
    /* EINVAL: the file system can't sync folders, and nothing better is possible. */
    return rv == APR_FROM_OS_ERROR(EINVAL) ? APR_SUCCESS : rv;
}

/* Makes a missing folder and counts it in *made. */
static apr_status_t make_folder(const char *path, int *made)
{
    struct stat st;

    if (mkdir(path, FOLDER_MODE) == 0) {
        (*made)++;
        return APR_SUCCESS;
    }
    if (errno != EEXIST) {
        return mdl_storage_status(errno);
    }
    if (stat(path, &st) != 0) {
        return mdl_storage_status(errno);
    }
    return S_ISDIR(st.st_mode) ? APR_SUCCESS : APR_ENOTDIR;
}

const char *mdl_storage_shard(const mdl_storage_t *storage, char digit, apr_pool_t *p)
{
    return apr_psprintf(p, "%s/%c", storage->blobs, digit);
}

static apr_status_t make_shards(const mdl_storage_t *storage, apr_pool_t *p)
{
    int made = 0;

    for (const char *digit = MDL_HEX_DIGITS; *digit; digit++) {
        apr_status_t rv = make_folder(mdl_storage_shard(storage, *digit, p), &made);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return made ? mdl_storage_sync_folder(storage->blobs) : APR_SUCCESS;
}

apr_status_t mdl_storage_free(const mdl_storage_t *storage, apr_int64_t *bytes)
{
    struct statvfs fs;

    if (storage->partial == NULL) {
        return APR_ENOENT;
    }
    if (statvfs(storage->partial, &fs) != 0) {
        return mdl_storage_status(errno);
    }
    *bytes = (apr_int64_t)fs.f_bavail * (apr_int64_t)fs.f_frsize;
    return APR_SUCCESS;
}

apr_status_t mdl_storage_room(const mdl_storage_t *storage, apr_int64_t size)
{
    apr_int64_t left;
    apr_status_t rv;

    if (storage->partial == NULL || storage->reserve == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_storage_free(storage, &left);
    return rv == APR_SUCCESS && left - storage->reserve < size ? APR_ENOSPC : rv;
}

apr_status_t mdl_folder_open(mdl_storage_t *made, const mdl_storage_config_t *config, apr_pool_t *p)
{
    int folders = 0;
    apr_status_t rv;

    made->reserve = config->reserve;
    made->blobs = apr_pstrcat(p, config->folder, "/blobs", NULL);
    made->partial = apr_pstrcat(p, config->folder, "/partial", NULL);
    rv = make_folder(made->blobs, &folders);
    if (rv == APR_SUCCESS) {
        rv = make_folder(made->partial, &folders);
    }
    if (rv == APR_SUCCESS && folders) {
        rv = mdl_storage_sync_folder(config->folder);
    }
    return rv == APR_SUCCESS ? make_shards(made, p) : rv;
}

static int is_sha256(const char *name)
{
    return strlen(name) == MDL_SHA256_HEX_LENGTH &&
           strspn(name, MDL_HEX_DIGITS) == MDL_SHA256_HEX_LENGTH;
}

const char *mdl_storage_path(const mdl_storage_t *storage, const char *sha256, apr_pool_t *p)
{
    return storage->blobs != NULL && is_sha256(sha256)
               ? apr_psprintf(p, "%s/%c/%s", storage->blobs, sha256[0], sha256)
               : NULL;
}

apr_status_t mdl_folder_path_fault(const mdl_storage_t *storage)
{
    return storage->blobs == NULL ? APR_ENOENT : APR_EINVAL;
}

apr_status_t mdl_storage_file(apr_file_t **file, const mdl_storage_t *storage,
                              const mdl_blob_t *blob, apr_int32_t flags, apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);

    return path != NULL ? apr_file_open(file, path, APR_FOPEN_READ | APR_FOPEN_BINARY | flags,
                                        APR_FPROT_OS_DEFAULT, p)
                        : mdl_folder_path_fault(storage);
}

apr_status_t mdl_folder_find(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);
    struct stat found;

    if (path == NULL) {
        return mdl_folder_path_fault(storage);
    }
    return stat(path, &found) == 0 ? APR_SUCCESS : mdl_storage_status(errno);
}

apr_status_t mdl_folder_size(const mdl_storage_t *storage, const mdl_blob_t *blob,
                             apr_int64_t *size, apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);
    struct stat found;

    if (path == NULL) {
        return mdl_folder_path_fault(storage);
    }
    if (stat(path, &found) != 0 || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0) {
        return mdl_storage_status(errno);
    }
    *size = S_ISREG(found.st_mode) ? (apr_int64_t)found.st_size : -1;
    return APR_SUCCESS;
}

static apr_status_t local_digest(int fd, mdl_sha256_t *sha)
{
    char *buffer = malloc(MDL_PARTIAL_STEP);
    apr_status_t rv = buffer != NULL ? APR_SUCCESS : APR_ENOMEM;
    ssize_t n = 1;

    while (rv == APR_SUCCESS && n != 0) {
        n = read(fd, buffer, MDL_PARTIAL_STEP);
        if (n > 0) {
            mdl_sha256_update(sha, buffer, (apr_size_t)n);
        } else if (n < 0 && errno != EINTR) {
            rv = mdl_storage_status(errno);
        }
    }
    free(buffer);
    return rv;
}

apr_status_t mdl_folder_digest(const mdl_storage_t *storage, const mdl_blob_t *blob,
                               const char **digest, apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);
    unsigned char bytes[MDL_SHA256_LENGTH];
    mdl_sha256_t *sha;
    apr_status_t rv;
    int fd;

    if (path == NULL) {
        return mdl_folder_path_fault(storage);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return mdl_storage_status(errno);
    }
    sha = mdl_sha256_begin(p);
    rv = local_digest(fd, sha);
    mdl_sha256_end(sha, bytes);
    *digest = mdl_hex(bytes, sizeof bytes, p);
    /* A background read must not evict files that customers download from the page cache. */
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return rv;
}

apr_status_t mdl_storage_permit(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);

    if (path == NULL) {
        return mdl_folder_path_fault(storage);
    }
    return chmod(path, MDL_STORAGE_FILE_MODE) == 0 ? APR_SUCCESS : mdl_storage_status(errno);
}

apr_status_t mdl_storage_set_aside(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                   apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);

    if (path == NULL) {
        return mdl_folder_path_fault(storage);
    }
    return rename(path, apr_pstrcat(p, path, ".damaged", NULL)) == 0 ? APR_SUCCESS
                                                                     : mdl_storage_status(errno);
}

apr_status_t mdl_storage_touch(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);

    if (path == NULL) {
        return mdl_folder_path_fault(storage);
    }
    return utimensat(AT_FDCWD, path, NULL, 0) == 0 ? APR_SUCCESS : mdl_storage_status(errno);
}

apr_status_t mdl_storage_written_at(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                    apr_time_t *when, apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);
    apr_finfo_t info;
    apr_status_t rv = path != NULL ? apr_stat(&info, path, APR_FINFO_MTIME, p)
                                   : mdl_folder_path_fault(storage);

    if (rv == APR_SUCCESS) {
        *when = info.mtime;
    }
    return rv;
}

apr_status_t mdl_storage_remove(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p)
{
    const char *path = mdl_storage_path(storage, blob->sha256, p);

    if (path == NULL) {
        return mdl_folder_path_fault(storage);
    }
    return unlink(path) == 0 || errno == ENOENT ? APR_SUCCESS : mdl_storage_status(errno);
}

apr_status_t mdl_storage_list(const mdl_storage_t *storage, int shard, apr_array_header_t **sha256s,
                              apr_pool_t *p)
{
    apr_finfo_t entry;
    apr_dir_t *folder;
    apr_status_t rv;

    *sha256s = apr_array_make(p, 64, sizeof(const char *));
    if (storage->blobs == NULL) {
        return APR_SUCCESS;
    }
    rv = apr_dir_open(&folder, mdl_storage_shard(storage, MDL_HEX_DIGITS[shard], p), p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    while (apr_dir_read(&entry, APR_FINFO_NAME, folder) == APR_SUCCESS) {
        if (is_sha256(entry.name)) {
            APR_ARRAY_PUSH(*sha256s, const char *) = apr_pstrdup(p, entry.name);
        }
    }
    return apr_dir_close(folder);
}

/* Whether a finished file can be renamed into each shard. */
static apr_status_t check_shards(const mdl_storage_t *storage, apr_pool_t *p)
{
    struct stat partial;
    struct stat shard;

    if (stat(storage->partial, &partial) != 0) {
        return mdl_storage_status(errno);
    }
    for (const char *digit = MDL_HEX_DIGITS; *digit; digit++) {
        const char *path = mdl_storage_shard(storage, *digit, p);

        if (faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) != 0 ||
            stat(path, &shard) != 0) {
            return mdl_storage_status(errno);
        }
        if (shard.st_dev != partial.st_dev) {
            return APR_FROM_OS_ERROR(EXDEV);
        }
    }
    return APR_SUCCESS;
}

static apr_status_t local_check_file(int fd)
{
    static const char text[] = "check";
    char back[sizeof text];
    ssize_t n = pwrite(fd, text, sizeof text, 0);
    apr_status_t rv;

    if (n != (ssize_t)sizeof text) {
        return n < 0 ? mdl_storage_status(errno) : APR_ENOSPC;
    }
    rv = mdl_storage_sync_file(fd);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    n = pread(fd, back, sizeof back, 0);
    if (n < 0) {
        return mdl_storage_status(errno);
    }
    return n == (ssize_t)sizeof text && memcmp(back, text, sizeof text) == 0 ? APR_SUCCESS
                                                                             : APR_EGENERAL;
}

/* Checks link, by which a published upload gets its blob's name besides the partial file's. */
static apr_status_t check_link(const mdl_storage_t *storage, const char *path, apr_pool_t *p)
{
    const char *second = apr_pstrcat(p, mdl_storage_shard(storage, '0', p), strrchr(path, '/'),
                                     NULL);

    if (link(path, second) != 0 || unlink(second) != 0) {
        return mdl_storage_status(errno);
    }
    return APR_SUCCESS;
}

apr_status_t mdl_storage_check(const mdl_storage_t *storage, apr_pool_t *p)
{
    char *path;
    apr_status_t rv;
    int fd;

    if (storage->partial == NULL) {
        return APR_SUCCESS;
    }
    if ((rv = mdl_storage_room(storage, 0)) != APR_SUCCESS ||
        (rv = check_shards(storage, p)) != APR_SUCCESS) {
        return rv;
    }
    path = apr_pstrcat(p, storage->partial, "/" CHECK_NAME "XXXXXX", NULL);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return mdl_storage_status(errno);
    }
    rv = local_check_file(fd);
    close(fd);
    if (rv == APR_SUCCESS) {
        rv = check_link(storage, path, p);
    }
    if (unlink(path) != 0 && rv == APR_SUCCESS) {
        rv = mdl_storage_status(errno);
    }
    return rv;
}

void mdl_storage_clean(const mdl_storage_t *storage, apr_time_t before, apr_pool_t *p)
{
    apr_finfo_t entry;
    apr_dir_t *folder;

    if (storage->partial == NULL || apr_dir_open(&folder, storage->partial, p) != APR_SUCCESS) {
        return;
    }
    while (apr_dir_read(&entry, APR_FINFO_NAME | APR_FINFO_MTIME, folder) == APR_SUCCESS) {
        if (strncmp(entry.name, CHECK_NAME, strlen(CHECK_NAME)) == 0 && entry.mtime < before) {
            unlink(apr_pstrcat(p, mdl_storage_shard(storage, '0', p), "/", entry.name, NULL));
            unlink(apr_pstrcat(p, storage->partial, "/", entry.name, NULL));
        }
    }
    apr_dir_close(folder);
}
