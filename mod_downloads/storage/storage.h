/*
 * Where the bytes of blobs are: in files of a folder, or in objects of a store that speaks S3's
 * API.  The database knows which; new blobs go into the store if there is one.
 *
 * A file is named by its SHA-256 and appears only when complete: temporary file, fsync, rename,
 * fsync of the folder.  Clients' file names never get into a path.
 *
 *   <folder>/blobs/<first hex digit>/<sha256>
 *   <folder>/partial/<id>          an unfinished transfer
 *   <folder>/identity              tells this folder from others
 */
#ifndef MDL_STORAGE_STORAGE_H
#define MDL_STORAGE_STORAGE_H

#include <apr_errno.h>
#include <apr_file_io.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "base/http/object_store.h"

typedef struct mdl_storage_t mdl_storage_t;

typedef struct {
    const char *sha256; /* 64 lower-case hexadecimal digits */
    apr_int64_t size;   /* bytes */
    apr_uint32_t crc32;
    const char *object; /* the key of its object; NULL: a file of the folder has the bytes */
} mdl_blob_t;

/* Errors of the object store: base/http/object_store.h.  MDL_OBJECT_EDENIED also stands for a blob
   in an object when no store is configured. */

/** What the configuration says. */
typedef struct {
    const char *folder;          /* absolute path; NULL: none, every blob is in an object */
    apr_int64_t reserve;         /* bytes that writing leaves free on the folder's file system */
    mdl_object_config_t objects; /* url NULL: none */
} mdl_storage_config_t;

/**
 * Opens the storage.  The folder must exist; missing sub-folders are made (mode 0750, owned by the
 * process's user).  A storage is read-only and can be shared by threads.  Connects to nothing; in a
 * process that uses objects, mdl_http_global_init comes first.
 */
apr_status_t mdl_storage_open(mdl_storage_t **storage, const mdl_storage_config_t *config,
                              apr_pool_t *p);

#define MDL_STORAGE_IDENTITY_FILE "identity"

/** Reads the identity of a folder, "storage_" and a ULID.  APR_ENOENT if it has none, APR_EINVAL if
    the file has other content. */
apr_status_t mdl_storage_identity(const char *folder, const char **identity, apr_pool_t *p);

/** A new, unique identity, in p. */
const char *mdl_storage_new_identity(apr_pool_t *p);

/** Reads a folder's identity, and makes one if it has none; concurrent callers get the same. */
apr_status_t mdl_storage_identify(const char *folder, const char **identity, apr_pool_t *p);

/** Gives a folder without an identity this one. */
apr_status_t mdl_storage_set_identity(const char *folder, const char *identity, apr_pool_t *p);

/** Whether a storage folder has any blob. */
int mdl_storage_has_blobs(const char *folder, apr_pool_t *p);

#define MDL_STORAGE_IDENTITY_OBJECT "identity"

/** Reads the identity of a bucket, as mdl_storage_identity does that of a folder.  Other errors are
    those of base/http/object_store.h. */
apr_status_t mdl_storage_objects_identity(mdl_object_store_t *store, const char **identity,
                                          mdl_object_call_t *call, apr_pool_t *p);

/** Writes the identity of a bucket. */
apr_status_t mdl_storage_objects_identify(mdl_object_store_t *store, const char *identity,
                                          mdl_object_call_t *call, apr_pool_t *p);

/** APR_SUCCESS if size bytes can be written now, APR_ENOSPC if that would use the reserve. */
apr_status_t mdl_storage_room(const mdl_storage_t *storage, apr_int64_t size);

/** Reads how many bytes the folder's file system has left, the reserve included.  APR_ENOENT
    without a folder. */
apr_status_t mdl_storage_free(const mdl_storage_t *storage, apr_int64_t *bytes);

/** The store; NULL: none. */
mdl_object_store_t *mdl_storage_objects(const mdl_storage_t *storage);

/** Whether there is a folder. */
int mdl_storage_has_folder(const mdl_storage_t *storage);

/* Each of the following returns APR_EINVAL unless the blob's sha256 is 64 lower-case hexadecimal
   digits, and APR_ENOENT if the storage has no such blob.  Those on objects wait for the store, so
   none may be called in a transaction. */

/** Whether there is such a blob. */
apr_status_t mdl_storage_find(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p);

/** Reads a blob's size in bytes; APR_EACCES if it can't be read. */
apr_status_t mdl_storage_size(const mdl_storage_t *storage, const mdl_blob_t *blob,
                              apr_int64_t *size, apr_pool_t *p);

/** Reads a blob and computes its SHA-256, which differs from blob->sha256 if it is damaged. */
apr_status_t mdl_storage_digest(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                const char **digest, apr_pool_t *p);

/** Where a blob is, for people; NULL unless its sha256 is valid. */
const char *mdl_storage_place(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p);

/* The following are for blobs in the folder.  Without a folder there is no blob, the lists are
   empty, every check succeeds, and a partial file is missing and can't be opened: APR_EINVAL. */

/** Opens a blob for reading; flags are those of apr_file_open besides APR_FOPEN_READ.  APR_EINVAL
    for a blob in an object: base/http/object_reader.h reads those. */
apr_status_t mdl_storage_file(apr_file_t **file, const mdl_storage_t *storage,
                              const mdl_blob_t *blob, apr_int32_t flags, apr_pool_t *p);

/** Restores a blob's original file mode; only its owner may. */
apr_status_t mdl_storage_permit(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                apr_pool_t *p);

/** Appends ".damaged" to a blob's name, so that the blob counts as missing.  Replaces an earlier
    file of that name. */
apr_status_t mdl_storage_set_aside(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                   apr_pool_t *p);

/** Dates a blob anew, as if it were written now. */
apr_status_t mdl_storage_touch(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p);

/** When a blob was written, or dated anew. */
apr_status_t mdl_storage_written_at(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                    apr_time_t *when, apr_pool_t *p);

/** Removes a blob; APR_SUCCESS also if there is none. */
apr_status_t mdl_storage_remove(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                apr_pool_t *p);

#define MDL_STORAGE_SHARDS 16

/** Lists the SHA-256 (const char *) of the blobs in one of the MDL_STORAGE_SHARDS folders. */
apr_status_t mdl_storage_list(const mdl_storage_t *storage, int shard, apr_array_header_t **sha256s,
                              apr_pool_t *p);

/**
 * Tests the folder: writes, syncs, reads, links and removes a small file, and checks that files can
 * be renamed into each blob folder and that the reserve is free.  Returns the first error.
 */
apr_status_t mdl_storage_check(const mdl_storage_t *storage, apr_pool_t *p);

/** Removes files that a killed mdl_storage_check left before a time. */
void mdl_storage_clean(const mdl_storage_t *storage, apr_time_t before, apr_pool_t *p);

/**
 * A file being written.  Belongs to one thread and to the pool it was opened with; if the pool is
 * cleared before the file is closed, the file stays, but buffered bytes are lost.
 */
typedef struct mdl_partial_t mdl_partial_t;

/** The ids of partial files that belong to no job or upload, but to a copy of an object. */
#define MDL_STORAGE_COPY_PREFIX "copy_"

#define MDL_PARTIAL_STEP (1024 * 1024) /* bytes that are read back at a time */

/**
 * Opens or creates the partial file of a transfer, and reads its bytes into the digests.  id has
 * only [a-z0-9_], else APR_EINVAL.  Takes an exclusive lock (flock); APR_EAGAIN if another writer
 * holds it.  stopped (may be NULL) is called after each MDL_PARTIAL_STEP; if it returns true, the
 * result is APR_EINTR and the file is unchanged.
 */
apr_status_t mdl_partial_open(mdl_partial_t **partial, mdl_storage_t *storage, const char *id,
                              int (*stopped)(void *baton), void *baton, apr_pool_t *p);

/**
 * The same without reading: unless the file was empty, it has no digests (mdl_partial_hashed).
 */
apr_status_t mdl_partial_append(mdl_partial_t **partial, mdl_storage_t *storage, const char *id,
                                apr_pool_t *p);

/** When a partial file was last written, without opening it; APR_ENOENT if it is missing. */
apr_status_t mdl_partial_written_at(mdl_storage_t *storage, const char *id, apr_time_t *when,
                                    apr_pool_t *p);

/** The number of valid bytes in a partial file, without opening it; APR_ENOENT if it is missing. */
apr_status_t mdl_partial_length(mdl_storage_t *storage, const char *id, apr_int64_t *length,
                                apr_pool_t *p);

/** Syncs the written bytes; length gets their number.  APR_ENOENT if the file is missing.  If the
    disk fails to sync a file, here or when it becomes a blob, none of its bytes are valid any more:
    they must be sent again. */
apr_status_t mdl_partial_sync(mdl_storage_t *storage, const char *id, apr_int64_t *length,
                              apr_pool_t *p);

/** Lists the ids (const char *) of all partial files; a file with a mark (mdl_partial_mark) is
    listed twice. */
apr_status_t mdl_partial_list(mdl_storage_t *storage, apr_array_header_t **ids, apr_pool_t *p);

/** The size in bytes, buffered bytes included. */
apr_int64_t mdl_partial_size(const mdl_partial_t *partial);

/** Whether every byte is in the digests. */
int mdl_partial_hashed(const mdl_partial_t *partial);

/**
 * Appends, through a buffer of 256 KiB.  APR_ENOSPC: no space left without the reserve, or the
 * quota or the maximum file size is reached.  APR_EINVAL after mdl_partial_digest, and for a
 * published file.
 */
apr_status_t mdl_partial_write(mdl_partial_t *partial, const char *data, apr_size_t length);

/**
 * Makes bytes appended from now on provisional until mdl_partial_accept: mdl_partial_length does
 * not count them, and if the process dies, the next open drops them.
 */
apr_status_t mdl_partial_mark(mdl_partial_t *partial);
apr_status_t mdl_partial_accept(mdl_partial_t *partial);

/** Truncates to size bytes.  0 restarts the digests.  A published file can only be truncated to 0,
    and its blob stays. */
apr_status_t mdl_partial_truncate(mdl_partial_t *partial, apr_int64_t size);

/**
 * Writes buffered bytes, without sync, and closes the file, which can be opened again.
 */
apr_status_t mdl_partial_keep(mdl_partial_t *partial);

/** Closes and removes the file. */
void mdl_partial_discard(mdl_partial_t *partial);

/**
 * Writes buffered bytes and computes the digests into blob (sha256 in p); the file stays partial.
 * Call it before mdl_partial_commit_all, to compare a checksum first.  Afterwards nothing can be
 * appended unless the file is truncated.  APR_EINVAL unless mdl_partial_hashed.
 */
apr_status_t mdl_partial_digest(mdl_partial_t *partial, mdl_blob_t *blob, apr_pool_t *p);

typedef struct {
    mdl_partial_t *partial;
    const mdl_blob_t *blob; /* from mdl_partial_digest */
    apr_status_t rv;        /* the result */
} mdl_partial_commit_t;

/**
 * Makes blobs of count partial files: fsync, rename to the blob's name, fsync of the folder; if the
 * blob exists already, the partial file is removed instead.  Each step is done for all files before
 * the next, so that the file system's journal commits once for many.  Closes each partial in every
 * case; after an error the file is kept.  Results: APR_EINVAL if blob is not the partial's,
 * APR_ENOENT if the partial file was removed meanwhile, or the disk's error.
 */
void mdl_partial_commit_all(mdl_partial_commit_t *commits, int count);

/**
 * As mdl_partial_commit_all for one file, but the partial file stays as a second link to the blob
 * until it is removed: for bytes that could not be sent again if the following transaction failed.
 */
apr_status_t mdl_partial_publish(mdl_partial_t *partial, const mdl_blob_t *blob);

/** Removes a partial file by its id; APR_SUCCESS also if there is none. */
apr_status_t mdl_partial_remove(mdl_storage_t *storage, const char *id, apr_pool_t *p);

#endif
