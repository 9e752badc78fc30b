/*
 * How much the storage has, by what the database knows.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_STATUS_H
#define MDL_CORE_CATALOG_STORAGE_STATUS_H

#include "db/db.h"

typedef struct {
    apr_int64_t files; /* blobs in the folder */
    apr_int64_t file_bytes;
    apr_int64_t objects; /* blobs in objects */
    apr_int64_t object_bytes;
    apr_int64_t missing; /* of objects: known to be gone or damaged */
    apr_int64_t strays;  /* keys that no blob has: being written, or to be removed */
    apr_int64_t holds;
} mdl_storage_status_t;

/** Effect: reads all rows of blobs, which may take seconds for millions of them. */
apr_status_t mdl_storage_read_status(mdl_db_t *db, apr_pool_t *p, mdl_storage_status_t *status);

#endif
