/*
 * The bytes that assets and finished uploads refer to, each kept once.  What nobody refers to any
 * more is removed: the file while the row is locked, so that whoever stores the same bytes
 * meanwhile either keeps it or finds it gone.
 */
#ifndef MDL_CORE_CATALOG_BLOB_H
#define MDL_CORE_CATALOG_BLOB_H

#include "db/db.h"
#include "storage/storage.h"

/** Notes a blob that storage has, and keeps it from being swept up to the transaction's end.  held
    is for mdl_blob_check. */
apr_status_t mdl_blob_store(mdl_db_t *db, const mdl_blob_t *blob, mdl_rows_t **held, apr_pool_t *p);

/**
 * Waits until mdl_blob_store has been answered, from when on the file can't be swept, and looks
 * whether it is still there.  APR_EINCOMPLETE when it was swept before, and has to be stored again.
 */
apr_status_t mdl_blob_check(mdl_rows_t *held, const mdl_storage_t *storage, const char *sha256,
                            apr_pool_t *p);

/** Notes that a reference to a blob is gone; sha256 may be NULL. */
apr_status_t mdl_blob_release(mdl_db_t *db, const char *sha256, apr_pool_t *p);

/** Notes a blob that was put into storage in vain: unless somebody else refers to it, it is swept.
    NULL is taken too. */
apr_status_t mdl_blob_leave(mdl_db_t *db, const mdl_blob_t *blob, apr_pool_t *p);

/** Effect that reads up to limit blobs that were released before a time. */
typedef struct {
    apr_time_t before;
    int limit;
    apr_array_header_t *released; /* out: const char *, their SHA-256 */
} mdl_blob_released_t;
apr_status_t mdl_blob_released(mdl_db_t *db, apr_pool_t *p, mdl_blob_released_t *find);

/** Effect: removes a blob and its file, unless somebody refers to it.  APR_ENOENT when there is
   none, APR_EAGAIN while the storage is held (core/catalog/storage_hold.h). */
typedef struct {
    const mdl_storage_t *storage;
    const char *sha256;
} mdl_blob_sweep_t;
apr_status_t mdl_blob_sweep(mdl_db_t *db, apr_pool_t *p, const mdl_blob_sweep_t *sweep);

/** Effect that reads which files have no row in the database, as a kill between the two leaves
 * them. */
typedef struct {
    const apr_array_header_t *ids; /* const char *, their SHA-256 */
    apr_array_header_t *orphans;   /* out: likewise */
} mdl_blob_orphans_t;
apr_status_t mdl_blob_orphans(mdl_db_t *db, apr_pool_t *p, mdl_blob_orphans_t *find);

/** Effect: removes a file that has no row, unless it has got one meanwhile.  APR_EAGAIN as above.
 */
apr_status_t mdl_blob_sweep_orphan(mdl_db_t *db, apr_pool_t *p, const mdl_blob_sweep_t *sweep);

#endif
