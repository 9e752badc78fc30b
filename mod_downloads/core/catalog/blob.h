/*
 * Blobs: the bytes of assets and finished uploads, equal bytes stored once.  Blobs without a
 * reference are swept.  The row is locked while the file is removed, so a transaction that stores
 * the same bytes at that time either keeps the file or finds that it is gone.
 */
#ifndef MDL_CORE_CATALOG_BLOB_H
#define MDL_CORE_CATALOG_BLOB_H

#include "db/db.h"
#include "storage/storage.h"

/** Records a blob that the storage has, and protects it from the sweep until the end of the
    transaction.  *held is for mdl_blob_check.  A blob that the database knows already stays where
    it is. */
apr_status_t mdl_blob_store(mdl_db_t *db, const mdl_blob_t *blob, mdl_rows_t **held, apr_pool_t *p);

/**
 * Waits for the answer of mdl_blob_store, after which the file can't be swept, and checks that the
 * file is still there; an object's key is no stray any more.  APR_EINCOMPLETE when it was swept
 * before: it must be stored again.
 */
apr_status_t mdl_blob_check(mdl_db_t *db, mdl_rows_t *held, const mdl_storage_t *storage,
                            const mdl_blob_t *blob, apr_pool_t *p);

/** Records that a reference to a blob was removed; sha256 may be NULL. */
apr_status_t mdl_blob_release(mdl_db_t *db, const char *sha256, apr_pool_t *p);

/** Records a blob stored in vain: it is swept unless something refers to it.  blob may be NULL.  An
    object is a stray anyway. */
apr_status_t mdl_blob_leave(mdl_db_t *db, const mdl_blob_t *blob, apr_pool_t *p);

/** Effect: reads up to limit blobs that were released before a time. */
typedef struct {
    apr_time_t before;
    int limit;
    apr_array_header_t *released; /* out: const char *, their SHA-256 */
} mdl_blob_released_t;
apr_status_t mdl_blob_released(mdl_db_t *db, apr_pool_t *p, mdl_blob_released_t *find);

/** Effect: removes a blob and its file, unless something refers to it.  An object becomes a stray
    (core/catalog/stray_object.h).  APR_ENOENT when there is no
    such blob, APR_EAGAIN while the storage is held (core/catalog/storage_hold.h). */
typedef struct {
    const mdl_storage_t *storage;
    const char *sha256;
} mdl_blob_sweep_t;
apr_status_t mdl_blob_sweep(mdl_db_t *db, apr_pool_t *p, const mdl_blob_sweep_t *sweep);

/** Effect: reads which files have no row in the database, as left behind by a killed process. */
typedef struct {
    const apr_array_header_t *ids; /* const char *, their SHA-256 */
    apr_array_header_t *orphans;   /* out: likewise */
} mdl_blob_orphans_t;
apr_status_t mdl_blob_orphans(mdl_db_t *db, apr_pool_t *p, mdl_blob_orphans_t *find);

/** Effect: removes a file without a row, unless it has got one by now.  APR_EAGAIN as above. */
apr_status_t mdl_blob_sweep_orphan(mdl_db_t *db, apr_pool_t *p, const mdl_blob_sweep_t *sweep);

/** Effect: reads which files are copies of blobs that are in objects. */
typedef struct {
    const apr_array_header_t *ids; /* const char *, their SHA-256 */
    apr_array_header_t *copies;    /* out: likewise */
} mdl_blob_copies_t;
apr_status_t mdl_blob_copies(mdl_db_t *db, apr_pool_t *p, mdl_blob_copies_t *find);

/** Effect: removes such a file.  APR_ENOENT when the blob needs it by now, APR_EAGAIN as above. */
apr_status_t mdl_blob_sweep_copy(mdl_db_t *db, apr_pool_t *p, const mdl_blob_sweep_t *sweep);

/** Effect: gives up an object whose bytes are not the blob's.  It counts as missing, so that the
    next import of the same bytes takes its place, and then is a stray. */
apr_status_t mdl_blob_give_up(mdl_db_t *db, apr_pool_t *p, const mdl_blob_t *blob);

#endif
