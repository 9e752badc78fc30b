#include "storage/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_strings.h>

#include "base/zip/crc32.h"
#include "base/crypto.h"

#define GATHER_SIZE   ((apr_size_t)256 * 1024)
#define WRITE_OUT     APR_INT64_C(8388608) /* dirty bytes after which write-out is started */
#define OPEN_ATTEMPTS 100
#define PARTIAL_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_"

struct mdl_partial_t {
    apr_pool_t *pool; /* its own; destroying it closes the file */
    const mdl_storage_t *storage;
    const char *path;
    int fd;
    apr_int64_t written;     /* bytes in the file */
    int hashed;              /* all bytes are in the digests */
    int published;           /* the file is also a blob: its bytes must not change */
    apr_int64_t written_out; /* bytes whose write-out was started */
    int synced;              /* no write since the last fsync */
    apr_size_t gathered;     /* bytes in buffer */
    char *buffer;
    mdl_sha256_t *sha;
    apr_uint32_t crc;
    const char *sha256; /* set by mdl_partial_digest, else NULL */
};

static const char *partial_path(const mdl_storage_t *storage, const char *id, apr_pool_t *p)
{
    if (storage->partial == NULL || *id == '\0' || id[strspn(id, PARTIAL_CHARS)] != '\0') {
        return NULL;
    }
    return apr_pstrcat(p, storage->partial, "/", id, NULL);
}

/* A symbolic link whose target is the number of valid bytes, while later ones are provisional. */
static const char *mark_name(const char *path, apr_pool_t *p)
{
    return apr_pstrcat(p, path, ".mark", NULL);
}

/* The number of valid bytes in a file of this size. */
static apr_int64_t partial_counted(const char *path, apr_int64_t size, apr_pool_t *p)
{
    char text[24];
    ssize_t length = readlink(mark_name(path, p), text, sizeof text - 1);
    apr_int64_t counted;

    if (length < 0) {
        return size;
    }
    text[length] = '\0';
    counted = apr_atoi64(text);
    return counted < size ? counted : size;
}

static apr_status_t mark_set(const char *path, apr_int64_t counted, apr_pool_t *p)
{
    const char *text = apr_psprintf(p, "%" APR_INT64_T_FMT, counted);

    return symlink(text, mark_name(path, p)) == 0 ? APR_SUCCESS : mdl_storage_status(errno);
}

/* When the disk refuses bytes, the kernel drops them and reports that once; the next fsync would
   succeed without them.  So after a failed fsync none of the file's bytes are valid. */
static apr_status_t partial_sync_file(const char *path, int fd, apr_pool_t *p)
{
    apr_status_t rv = mdl_storage_sync_file(fd);

    if (rv != APR_SUCCESS) {
        unlink(mark_name(path, p));
        mark_set(path, 0, p);
    }
    return rv;
}

/* Whether path still names the open file. */
static int partial_same_file(int fd, const char *path)
{
    struct stat opened;
    struct stat named;

    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/*
 * Opens and locks a file.  In between, its former writer may have made it a blob or removed it:
 * then the lock is worthless, and the path is opened again.
 */
static apr_status_t open_locked(int *fd, const char *path)
{
    for (int i = 0; i < OPEN_ATTEMPTS; i++) {
        apr_status_t rv = APR_SUCCESS;
        int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, MDL_STORAGE_FILE_MODE);

        if (opened < 0) {
            return mdl_storage_status(errno);
        }
        if (flock(opened, LOCK_EX | LOCK_NB) != 0) {
            rv = errno == EWOULDBLOCK ? APR_EAGAIN : mdl_storage_status(errno);
        } else if (partial_same_file(opened, path)) {
            *fd = opened;
            return APR_SUCCESS;
        }
        close(opened);
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_EAGAIN;
}

static void partial_take_in(mdl_partial_t *partial, const char *data, apr_size_t length)
{
    if (partial->hashed) {
        mdl_sha256_update(partial->sha, data, length);
        partial->crc = mdl_crc32(partial->crc, data, length);
    }
    partial->written += (apr_int64_t)length;
}

static apr_status_t partial_read_back(mdl_partial_t *partial, int (*stopped)(void *baton),
                                      void *baton)
{
    apr_status_t rv = APR_SUCCESS;
    char *buffer;
    ssize_t n;

    buffer = malloc(MDL_PARTIAL_STEP);
    if (buffer == NULL) {
        return APR_ENOMEM;
    }
    do {
        n = pread(partial->fd, buffer, MDL_PARTIAL_STEP, (off_t)partial->written);
        if (n > 0) {
            partial_take_in(partial, buffer, (apr_size_t)n);
        } else if (n < 0 && errno != EINTR) {
            rv = mdl_storage_status(errno);
        }
        if (rv == APR_SUCCESS && stopped != NULL && stopped(baton)) {
            rv = APR_EINTR;
        }
    } while (n != 0 && rv == APR_SUCCESS);
    free(buffer);
    return rv;
}

static apr_status_t partial_close(void *data)
{
    mdl_partial_t *partial = data;
    int fd = partial->fd;

    partial->fd = -1;
    return fd >= 0 && close(fd) != 0 ? mdl_storage_status(errno) : APR_SUCCESS;
}

/* Opens and locks the file, drops provisional bytes, and sees whether it is published. */
static apr_status_t partial_open_file(mdl_partial_t *partial)
{
    apr_status_t rv = partial->path != NULL ? open_locked(&partial->fd, partial->path) : APR_EINVAL;
    struct stat st;

    if (rv == APR_SUCCESS && fstat(partial->fd, &st) != 0) {
        rv = mdl_storage_status(errno);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    partial->published = st.st_nlink > 1;
    partial->written_out = (apr_int64_t)st.st_size;
    if (!partial->published) {
        partial->written_out = partial_counted(partial->path, partial->written_out, partial->pool);
    }
    if (partial->written_out < (apr_int64_t)st.st_size &&
        ftruncate(partial->fd, (off_t)partial->written_out) != 0) {
        return mdl_storage_status(errno);
    }
    return mdl_partial_accept(partial);
}

static apr_status_t partial_open(mdl_partial_t **partial, mdl_storage_t *storage, const char *id,
                                 apr_pool_t *p)
{
    mdl_partial_t *opened;
    apr_pool_t *pool;
    apr_status_t rv;

    *partial = NULL;
    apr_pool_create(&pool, p);
    apr_pool_tag(pool, "mdl_partial");
    opened = apr_pcalloc(pool, sizeof *opened);
    opened->pool = pool;
    opened->storage = storage;
    opened->fd = -1;
    opened->path = partial_path(storage, id, pool);
    apr_pool_cleanup_register(pool, opened, partial_close, apr_pool_cleanup_null);
    rv = partial_open_file(opened);
    if (rv != APR_SUCCESS) {
        apr_pool_destroy(pool);
        return rv;
    }
    opened->buffer = apr_palloc(pool, GATHER_SIZE);
    opened->sha = mdl_sha256_begin(pool);
    opened->hashed = 1;
    *partial = opened;
    return APR_SUCCESS;
}

/* Closes the partial again if rv is an error. */
static apr_status_t opened_if(apr_status_t rv, mdl_partial_t **partial)
{
    if (rv != APR_SUCCESS) {
        apr_pool_destroy((*partial)->pool);
        *partial = NULL;
    }
    return rv;
}

apr_status_t mdl_partial_open(mdl_partial_t **partial, mdl_storage_t *storage, const char *id,
                              int (*stopped)(void *baton), void *baton, apr_pool_t *p)
{
    apr_status_t rv = partial_open(partial, storage, id, p);

    return rv == APR_SUCCESS ? opened_if(partial_read_back(*partial, stopped, baton), partial) : rv;
}

apr_status_t mdl_partial_append(mdl_partial_t **partial, mdl_storage_t *storage, const char *id,
                                apr_pool_t *p)
{
    apr_status_t rv = partial_open(partial, storage, id, p);

    if (rv == APR_SUCCESS) {
        (*partial)->written = (*partial)->written_out;
        (*partial)->hashed = (*partial)->written == 0;
    }
    return rv;
}

static apr_status_t partial_stat(mdl_storage_t *storage, const char *id, apr_finfo_t *info,
                                 apr_pool_t *p)
{
    const char *path = partial_path(storage, id, p);

    return path != NULL ? apr_stat(info, path, APR_FINFO_MTIME | APR_FINFO_SIZE, p)
                        : mdl_folder_path_fault(storage);
}

apr_status_t mdl_partial_written_at(mdl_storage_t *storage, const char *id, apr_time_t *when,
                                    apr_pool_t *p)
{
    apr_finfo_t info;
    apr_status_t rv = partial_stat(storage, id, &info, p);

    if (rv == APR_SUCCESS) {
        *when = info.mtime;
    }
    return rv;
}

apr_status_t mdl_partial_length(mdl_storage_t *storage, const char *id, apr_int64_t *length,
                                apr_pool_t *p)
{
    apr_finfo_t info;
    apr_status_t rv = partial_stat(storage, id, &info, p);

    if (rv == APR_SUCCESS) {
        *length = partial_counted(partial_path(storage, id, p), info.size, p);
    }
    return rv;
}

/* Bytes written after length was read may not be synced, and are not counted. */
apr_status_t mdl_partial_sync(mdl_storage_t *storage, const char *id, apr_int64_t *length,
                              apr_pool_t *p)
{
    apr_status_t rv = mdl_partial_length(storage, id, length, p);
    const char *path;
    int fd;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    path = partial_path(storage, id, p);
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return mdl_storage_status(errno);
    }
    rv = partial_sync_file(path, fd, p);
    close(fd);
    return rv == APR_SUCCESS ? mdl_storage_sync_folder(storage->partial) : rv;
}

apr_status_t mdl_partial_list(mdl_storage_t *storage, apr_array_header_t **ids, apr_pool_t *p)
{
    apr_finfo_t entry;
    apr_dir_t *folder;
    apr_status_t rv;

    *ids = apr_array_make(p, 16, sizeof(const char *));
    if (storage->partial == NULL) {
        return APR_SUCCESS;
    }
    rv = apr_dir_open(&folder, storage->partial, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    while (apr_dir_read(&entry, APR_FINFO_NAME, folder) == APR_SUCCESS) {
        const char *id = apr_pstrmemdup(p, entry.name, strcspn(entry.name, "."));

        if (partial_path(storage, id, p) != NULL) {
            APR_ARRAY_PUSH(*ids, const char *) = id;
        }
    }
    return apr_dir_close(folder);
}

apr_int64_t mdl_partial_size(const mdl_partial_t *partial)
{
    return partial->written + (apr_int64_t)partial->gathered;
}

int mdl_partial_hashed(const mdl_partial_t *partial)
{
    return partial->hashed;
}

/* Starts write-out without waiting, so that a later fsync has little to do. */
static void partial_write_out(mdl_partial_t *partial)
{
    sync_file_range(partial->fd, partial->written_out, partial->written - partial->written_out,
                    SYNC_FILE_RANGE_WRITE);
    partial->written_out = partial->written;
}

/* Writes the buffer.  Digests and file always agree: what could not be written stays in it. */
static apr_status_t partial_flush(mdl_partial_t *partial)
{
    apr_status_t rv = mdl_storage_room(partial->storage, (apr_int64_t)partial->gathered);
    apr_size_t done = 0;

    while (done < partial->gathered && rv == APR_SUCCESS) {
        ssize_t n = pwrite(partial->fd, partial->buffer + done, partial->gathered - done,
                           (off_t)partial->written);

        if (n > 0) {
            partial_take_in(partial, partial->buffer + done, (apr_size_t)n);
            done += (apr_size_t)n;
        } else if (n == 0) {
            rv = APR_ENOSPC;
        } else if (errno != EINTR) {
            rv = mdl_storage_status(errno);
        }
    }
    partial->gathered -= done;
    memmove(partial->buffer, partial->buffer + done, partial->gathered);
    if (partial->written - partial->written_out >= WRITE_OUT) {
        partial_write_out(partial);
    }
    partial->synced = 0;
    return rv;
}

apr_status_t mdl_partial_write(mdl_partial_t *partial, const char *data, apr_size_t length)
{
    if (partial->sha256 != NULL || partial->published) {
        return APR_EINVAL;
    }
    while (length > 0) {
        apr_size_t room = GATHER_SIZE - partial->gathered;
        apr_size_t n = length < room ? length : room;

        memcpy(partial->buffer + partial->gathered, data, n);
        partial->gathered += n;
        data += n;
        length -= n;
        if (partial->gathered == GATHER_SIZE) {
            apr_status_t rv = partial_flush(partial);

            if (rv != APR_SUCCESS) {
                return rv;
            }
        }
    }
    return APR_SUCCESS;
}

apr_status_t mdl_partial_mark(mdl_partial_t *partial)
{
    return mark_set(partial->path, mdl_partial_size(partial), partial->pool);
}

apr_status_t mdl_partial_accept(mdl_partial_t *partial)
{
    return unlink(mark_name(partial->path, partial->pool)) == 0 || errno == ENOENT
               ? APR_SUCCESS
               : mdl_storage_status(errno);
}

/* Unlinks the file only if the path still names it: the id may have been removed and reused. */
static apr_status_t partial_remove_own(mdl_partial_t *partial)
{
    if (!partial_same_file(partial->fd, partial->path)) {
        return APR_SUCCESS;
    }
    mdl_partial_accept(partial);
    return unlink(partial->path) == 0 ? APR_SUCCESS : mdl_storage_status(errno);
}

static void partial_hash_anew(mdl_partial_t *partial)
{
    unsigned char unused[MDL_SHA256_LENGTH];

    mdl_sha256_end(partial->sha, unused);
    partial->crc = 0;
    partial->hashed = 1;
    partial->sha256 = NULL;
}

/* Leaves the published file to its blob, and opens a new one. */
static apr_status_t partial_begin_another(mdl_partial_t *partial)
{
    apr_status_t rv = partial_remove_own(partial);

    if (rv == APR_SUCCESS) {
        rv = partial_close(partial);
    }
    return rv == APR_SUCCESS ? partial_open_file(partial) : rv;
}

apr_status_t mdl_partial_truncate(mdl_partial_t *partial, apr_int64_t size)
{
    if (size > 0 && size >= partial->written) {
        partial->gathered = (apr_size_t)(size - partial->written);
        return APR_SUCCESS;
    }
    if (partial->published) {
        apr_status_t rv = size == 0 ? partial_begin_another(partial) : APR_EINVAL;

        if (rv != APR_SUCCESS) {
            return rv;
        }
    } else if (ftruncate(partial->fd, (off_t)size) != 0) {
        return mdl_storage_status(errno);
    }
    partial->written = size;
    partial->written_out = size;
    partial->gathered = 0;
    partial->hashed = 0;
    if (size == 0) {
        partial_hash_anew(partial);
    }
    return APR_SUCCESS;
}

apr_status_t mdl_partial_keep(mdl_partial_t *partial)
{
    apr_status_t rv = partial_flush(partial);
    apr_status_t closed = apr_pool_cleanup_run(partial->pool, partial, partial_close);

    apr_pool_destroy(partial->pool);
    return rv != APR_SUCCESS ? rv : closed;
}

void mdl_partial_discard(mdl_partial_t *partial)
{
    partial_remove_own(partial);
    apr_pool_destroy(partial->pool);
}

apr_status_t mdl_partial_digest(mdl_partial_t *partial, mdl_blob_t *blob, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    apr_status_t rv = partial_flush(partial);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (!partial->hashed) {
        return APR_EINVAL;
    }
    if (partial->sha256 == NULL) {
        mdl_sha256_end(partial->sha, digest);
        partial->sha256 = mdl_hex(digest, sizeof digest, partial->pool);
    }
    blob->sha256 = apr_pstrdup(p, partial->sha256);
    blob->size = partial->written;
    blob->crc32 = partial->crc;
    return APR_SUCCESS;
}

static int blob_exists(const char *path, apr_int64_t size)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == size;
}

/* The temporary second link of a file that is being published. */
static const char *second_name(const char *path, apr_pool_t *p)
{
    return apr_pstrcat(p, path, ".blob", NULL);
}

static apr_status_t partial_sync(mdl_partial_t *partial)
{
    apr_status_t rv = partial->synced
                          ? APR_SUCCESS
                          : partial_sync_file(partial->path, partial->fd, partial->pool);

    partial->synced = rv == APR_SUCCESS;
    return rv;
}

/* Makes the file a blob at path, by rename or, if it stays, by a second link.  A file of the wrong
   size at path is replaced. */
static apr_status_t partial_place(mdl_partial_t *partial, const char *path, int stays)
{
    const char *from = partial->path;
    apr_status_t rv = partial_sync(partial);

    if (rv == APR_SUCCESS && !partial_same_file(partial->fd, partial->path)) {
        return APR_ENOENT;
    }
    if (rv == APR_SUCCESS && stays) {
        from = second_name(partial->path, partial->pool);
        unlink(from); /* left by a process that was killed here */
        rv = link(partial->path, from) == 0 ? APR_SUCCESS : mdl_storage_status(errno);
    }
    if (rv == APR_SUCCESS && rename(from, path) != 0) {
        rv = mdl_storage_status(errno);
    }
    return rv;
}

static const char *partial_blob_path(const mdl_partial_t *partial)
{
    return mdl_storage_path(partial->storage, partial->sha256, partial->pool);
}

static int partial_has_blob(const mdl_partial_t *partial)
{
    return blob_exists(partial_blob_path(partial), partial->written);
}

static int partial_is_of(const mdl_partial_t *partial, const mdl_blob_t *blob)
{
    return partial->sha256 != NULL && strcmp(partial->sha256, blob->sha256) == 0;
}

static apr_status_t partial_become_blob(mdl_partial_t *partial, int stays)
{
    if (!partial_has_blob(partial)) {
        return partial_place(partial, partial_blob_path(partial), stays);
    }
    return stays ? APR_SUCCESS : partial_remove_own(partial);
}

/* Syncs the folder even for an existing blob: its writer may not have synced it yet. */
static apr_status_t partial_sync_shard(const mdl_partial_t *partial)
{
    return mdl_storage_sync_folder(
        mdl_storage_shard(partial->storage, partial->sha256[0], partial->pool));
}

/* Syncs each folder once, however many files were added to it. */
static void commits_sync_shards(mdl_partial_commit_t *commits, const mdl_partial_commit_t *end)
{
    for (const char *digit = MDL_HEX_DIGITS; *digit != '\0'; digit++) {
        apr_status_t rv = APR_SUCCESS;
        int synced = 0;

        for (mdl_partial_commit_t *commit = commits; commit < end; commit++) {
            if (commit->rv != APR_SUCCESS || commit->partial->sha256[0] != *digit) {
                continue;
            }
            if (!synced) {
                rv = partial_sync_shard(commit->partial);
                synced = 1;
            }
            commit->rv = rv;
        }
    }
}

void mdl_partial_commit_all(mdl_partial_commit_t *commits, int count)
{
    const mdl_partial_commit_t *end = commits + count;

    for (mdl_partial_commit_t *commit = commits; commit < end; commit++) {
        mdl_partial_t *partial = commit->partial;

        commit->rv = partial_is_of(partial, commit->blob) ? APR_SUCCESS : APR_EINVAL;
        if (commit->rv == APR_SUCCESS && !partial_has_blob(partial)) {
            partial_write_out(partial);
        }
    }
    for (mdl_partial_commit_t *commit = commits; commit < end; commit++) {
        mdl_partial_t *partial = commit->partial;

        if (commit->rv == APR_SUCCESS && !partial_has_blob(partial)) {
            commit->rv = partial_sync(partial);
        }
    }
    for (mdl_partial_commit_t *commit = commits; commit < end; commit++) {
        if (commit->rv == APR_SUCCESS) {
            commit->rv = partial_become_blob(commit->partial, 0);
        }
    }
    commits_sync_shards(commits, end);
    for (mdl_partial_commit_t *commit = commits; commit < end; commit++) {
        apr_pool_destroy(commit->partial->pool);
    }
}

apr_status_t mdl_partial_publish(mdl_partial_t *partial, const mdl_blob_t *blob)
{
    apr_status_t rv = partial_is_of(partial, blob) ? partial_become_blob(partial, 1) : APR_EINVAL;

    if (rv == APR_SUCCESS) {
        rv = partial_sync_shard(partial);
    }
    apr_pool_destroy(partial->pool);
    return rv;
}

apr_status_t mdl_partial_remove(mdl_storage_t *storage, const char *id, apr_pool_t *p)
{
    const char *path = partial_path(storage, id, p);

    if (path == NULL) {
        return storage->partial == NULL ? APR_SUCCESS : APR_EINVAL;
    }
    unlink(second_name(path, p)); /* left by a process that was killed in partial_place */
    unlink(mark_name(path, p));   /* left by a process that was killed before mdl_partial_accept */
    return unlink(path) == 0 || errno == ENOENT ? APR_SUCCESS : mdl_storage_status(errno);
}
