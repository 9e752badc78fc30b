/*
 * Removes what a copy (core/catalog/storage_copy.h), a restored database or a fault has left
 * behind: copies that nobody points to.  What the service itself leaves behind is removed by its
 * background process.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_CLEAN_H
#define MDL_CORE_CATALOG_STORAGE_CLEAN_H

#include "db/db.h"
#include "storage/storage.h"

typedef struct {
    mdl_storage_t *storage;
    /* Called behind each removal; size is -1 for an unfinished upload. */
    void (*removed)(void *baton, const char *what, apr_int64_t size);
    void *baton;
    apr_int64_t kept; /* out: copies that are too new to be removed */
    const char *why;  /* out, in p: after an error of the store or the folder; else NULL */
} mdl_storage_clean_t;

/**
 * Removes files whose blobs have been in objects for a day: until then an archive that has begun
 * may still read them.  Runs transactions of its own.  Returns an error of the database or of the
 * folder; APR_EAGAIN while the storage is held (core/catalog/storage_hold.h).
 */
apr_status_t mdl_storage_clean_folder(mdl_db_t *db, mdl_storage_clean_t *clean, apr_pool_t *p);

/**
 * Removes objects that neither a blob nor the list of stray keys knows, and unfinished uploads of
 * such keys, that have been in the store for a week by its clock.  A key is in the database before
 * its object is in the store, so that nobody writes them.  Errors as above, and those of
 * base/http/object_store.h.
 */
apr_status_t mdl_storage_clean_objects(mdl_db_t *db, mdl_storage_clean_t *clean, apr_pool_t *p);

#endif
