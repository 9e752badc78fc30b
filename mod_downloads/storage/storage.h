/*
 * Where bytes live: a content-addressed folder.  A file is named by its SHA-256 and becomes visible
 * only whole: temporary file, fsync, rename, fsync of the folder.  No name of a client ever gets
 * into a path.
 *
 *   <root>/blobs/<first hex digit>/<sha256>
 *   <root>/partial/<id>          a transfer that has not ended
 *   <root>/identity              by which a folder is told from another
 */
#ifndef MDL_STORAGE_STORAGE_H
#define MDL_STORAGE_STORAGE_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

typedef struct mdl_storage_t mdl_storage_t;

typedef struct {
    const char *sha256; /* 64 lower-case hexadecimal digits */
    apr_int64_t size;   /* bytes */
    apr_uint32_t crc32;
} mdl_blob_t;

/**
 * Opens a storage folder, which must be there, and makes its sub-folders where they are missing
 * (mode 0750; they belong to the process's user).  Writing leaves reserve bytes of its file system
 * free.
 */
apr_status_t mdl_storage_open(mdl_storage_t **storage, const char *root, apr_int64_t reserve,
                              apr_pool_t *p);

#define MDL_STORAGE_IDENTITY_FILE "identity"

/** Reads the identity of a folder, "storage_" and a ULID.  APR_ENOENT if it has none, APR_EINVAL if
    the file holds something else. */
apr_status_t mdl_storage_identity(const char *root, const char **identity, apr_pool_t *p);

/** An identity that no folder has yet. */
const char *mdl_storage_new_identity(apr_pool_t *p);

/** Gives a folder an identity unless it has one, and reads it: two processes that do so at once get
    the same. */
apr_status_t mdl_storage_identify(const char *root, const char **identity, apr_pool_t *p);

/** Whether there is any blob in a folder. */
int mdl_storage_has_blobs(const char *root, apr_pool_t *p);

/** APR_SUCCESS when so many bytes can be written now, APR_ENOSPC when the reserve would not be free
    any more. */
apr_status_t mdl_storage_room(const mdl_storage_t *storage, apr_int64_t size);

/**
 * The path of a blob, whether or not it is there; NULL unless sha256 is 64 lower-case hexadecimal
 * digits.
 */
const char *mdl_storage_path(const mdl_storage_t *storage, const char *sha256, apr_pool_t *p);

/** APR_SUCCESS when a blob is there, APR_ENOENT when it is not. */
apr_status_t mdl_storage_find(const mdl_storage_t *storage, const char *sha256, apr_pool_t *p);

/** Reads how many bytes a blob has; APR_ENOENT when it is not there, APR_EACCES when this process
   may not read it. */
apr_status_t mdl_storage_size(const mdl_storage_t *storage, const char *sha256, apr_int64_t *size,
                              apr_pool_t *p);

/** Reads a blob and computes its SHA-256, which is its name unless its bytes have changed. */
apr_status_t mdl_storage_digest(const mdl_storage_t *storage, const char *sha256,
                                const char **digest, apr_pool_t *p);

/** Gives a blob the mode that it was made with; for its owner. */
apr_status_t mdl_storage_permit(const mdl_storage_t *storage, const char *sha256, apr_pool_t *p);

/** Renames a blob whose bytes have changed to its name and ".damaged", so that it is missing; what
    was there before by that name is lost. */
apr_status_t mdl_storage_set_aside(const mdl_storage_t *storage, const char *sha256, apr_pool_t *p);

/** When a blob was written; APR_ENOENT. */
apr_status_t mdl_storage_written_at(const mdl_storage_t *storage, const char *sha256,
                                    apr_time_t *when, apr_pool_t *p);

/** Removes a blob; APR_SUCCESS also when there is none. */
apr_status_t mdl_storage_remove(const mdl_storage_t *storage, const char *sha256, apr_pool_t *p);

#define MDL_STORAGE_SHARDS 16

/** The SHA-256 (const char *) of the blobs in one of the MDL_STORAGE_SHARDS folders. */
apr_status_t mdl_storage_list(const mdl_storage_t *storage, int shard, apr_array_header_t **sha256s,
                              apr_pool_t *p);

/**
 * Writes, syncs, reads, links and removes a small file and looks whether a finished file can be
 * moved to each blob folder, and whether the reserve is free: APR_SUCCESS, or why the folder can't
 * be used.
 */
apr_status_t mdl_storage_check(const mdl_storage_t *storage, apr_pool_t *p);

/** Removes what a mdl_storage_check has left that was killed before a time. */
void mdl_storage_clean(const mdl_storage_t *storage, apr_time_t before, apr_pool_t *p);

/**
 * A file being written.  Belongs to one thread and to the pool it was opened with; if the pool is
 * cleared before the file is closed, the file stays, but what was gathered in memory is lost.
 */
typedef struct mdl_partial_t mdl_partial_t;

#define MDL_PARTIAL_STEP (1024 * 1024) /* bytes that are read back at a time */

/**
 * Opens the partial file of a transfer, making it where it is missing, and reads what is there into
 * the digests.  id is ours: [a-z0-9_] only, else APR_EINVAL.  An exclusive lock (flock) is taken:
 * APR_EAGAIN when another process writes it still.  stopped (may be NULL) is asked after each
 * MDL_PARTIAL_STEP; once it says so, APR_EINTR comes back and the file stays as it is.
 */
apr_status_t mdl_partial_open(mdl_partial_t **partial, mdl_storage_t *storage, const char *id,
                              int (*stopped)(void *baton), void *baton, apr_pool_t *p);

/**
 * The same without reading: what is appended to a file that is not empty is in no digest, and
 * mdl_partial_digest has none to give.
 */
apr_status_t mdl_partial_append(mdl_partial_t **partial, mdl_storage_t *storage, const char *id,
                                apr_pool_t *p);

/** When a partial file was last written, for who may not open it; APR_ENOENT. */
apr_status_t mdl_partial_written_at(mdl_storage_t *storage, const char *id, apr_time_t *when,
                                    apr_pool_t *p);

/** How many bytes of a partial file are written, likewise; APR_ENOENT. */
apr_status_t mdl_partial_length(mdl_storage_t *storage, const char *id, apr_int64_t *length,
                                apr_pool_t *p);

/** Makes the bytes that are written last a power cut; length gets their number.  APR_ENOENT.  Once
    the disk has refused bytes of a file, here or when it becomes a blob, none of the file's count:
    they are to be sent again. */
apr_status_t mdl_partial_sync(mdl_storage_t *storage, const char *id, apr_int64_t *length,
                              apr_pool_t *p);

/** The ids (const char *) of all partial files; one that has a mark comes twice. */
apr_status_t mdl_partial_list(mdl_storage_t *storage, apr_array_header_t **ids, apr_pool_t *p);

/** Bytes so far. */
apr_int64_t mdl_partial_size(const mdl_partial_t *partial);

/** Whether every byte is in the digests. */
int mdl_partial_hashed(const mdl_partial_t *partial);

/**
 * Appends.  Gathers 256 KiB before it hashes and writes.  APR_ENOSPC: the reserve, the disk, the
 * quota or the largest size of a file is reached.  APR_EINVAL after mdl_partial_digest, and of a
 * file that was published.
 */
apr_status_t mdl_partial_write(mdl_partial_t *partial, const char *data, apr_size_t length);

/**
 * From now on what is appended counts only once mdl_partial_accept was called: if this process dies
 * before that, whoever opens the file next throws it away, and mdl_partial_length does not count
 * it.
 */
apr_status_t mdl_partial_mark(mdl_partial_t *partial);
apr_status_t mdl_partial_accept(mdl_partial_t *partial);

/** Throws away what is behind the first size bytes.  At 0 the digests begin anew; of a published
    file only all can be thrown away, and the blob keeps it. */
apr_status_t mdl_partial_truncate(mdl_partial_t *partial, apr_int64_t size);

/**
 * Closes and keeps the file for another mdl_partial_open, with what was gathered written but not
 * synced.
 */
apr_status_t mdl_partial_keep(mdl_partial_t *partial);

/** Closes and removes the file. */
void mdl_partial_discard(mdl_partial_t *partial);

/**
 * Writes what was gathered and computes the digests into blob (sha256 allocated from p); the file
 * stays partial.  Call it before mdl_partial_commit_all, to compare a checksum first.  Nothing can
 * be appended afterwards unless the file is truncated.  APR_EINVAL unless mdl_partial_hashed.
 */
apr_status_t mdl_partial_digest(mdl_partial_t *partial, mdl_blob_t *blob, apr_pool_t *p);

typedef struct {
    mdl_partial_t *partial;
    const mdl_blob_t *blob; /* what mdl_partial_digest gave */
    apr_status_t rv;        /* the result */
} mdl_partial_commit_t;

/**
 * Makes count partial files blobs: fsync, rename to the blob's name, fsync of the folder; when the
 * blob is there already the partial file is removed instead.  Each step is done for all before the
 * next, so that the file system's journal commits once for many.  Closes each partial in every
 * case; after an error the file is kept.  Results: APR_EINVAL when blob is not the partial's;
 * APR_ENOENT when the partial file has been removed under its writer; that of the disk.
 */
void mdl_partial_commit_all(mdl_partial_commit_t *commits, int count);

/**
 * Like mdl_partial_commit_all of one, but the partial file stays as a second name of the blob until
 * it is removed: for bytes that nobody could send again if the transaction that follows fails.
 */
apr_status_t mdl_partial_publish(mdl_partial_t *partial, const mdl_blob_t *blob);

/** Removes a partial file by its id; APR_SUCCESS also when there is none. */
apr_status_t mdl_partial_remove(mdl_storage_t *storage, const char *id, apr_pool_t *p);

#endif
