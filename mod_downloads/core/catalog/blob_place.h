/*
 * Where a blob's bytes are, as those who read them find out: an object may be gone, or the blob has
 * got another place since its row was read.
 */
#ifndef MDL_CORE_CATALOG_BLOB_PLACE_H
#define MDL_CORE_CATALOG_BLOB_PLACE_H

#include "db/db.h"

/** Effect: a reader did not find a blob's object, or not in its size.  Unless the blob has another
    place by now, records that the object is missing.  APR_ENOENT: there is no such blob any more.
 */
typedef struct {
    const char *sha256;
    const char *object; /* where the reader looked; not NULL */
    int has_moved;      /* out */
    const char *place;  /* out, if it has moved: another object, or NULL for the folder */
} mdl_blob_missed_t;
apr_status_t mdl_blob_missed(mdl_db_t *db, apr_pool_t *p, mdl_blob_missed_t *missed);

/** Effect: an object that was recorded as missing is there. */
apr_status_t mdl_blob_found(mdl_db_t *db, apr_pool_t *p, const char *object);

#endif
