/*
 * What sessions that gave their download back had delivered of an assignment's file.  Two halves by
 * two links are one download, and what was delivered MDL_SESSION_FACTOR times over is one, too, for
 * a part that is never asked for must not make the rest free for ever.
 */
#ifndef MDL_CORE_DOWNLOAD_DELIVERED_H
#define MDL_CORE_DOWNLOAD_DELIVERED_H

#include "core/download/coverage.h"
#include "db/db.h"

/** A file of an assignment, in the version that the entity tag names. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id;
    const char *etag;
    apr_int64_t size;
} mdl_delivered_t;

/** Whether coverage is the whole, by itself or together with what was delivered before, which is
   forgotten only then. */
apr_status_t mdl_delivered_complete(mdl_db_t *db, const mdl_delivered_t *file,
                                    const mdl_coverage_t *coverage, int *whole, apr_pool_t *p);

/** Adds what a session delivered that is over.  *counts says whether all of it is a download by
   now; then it is forgotten, for it may be this session's own. */
apr_status_t mdl_delivered_add(mdl_db_t *db, const mdl_delivered_t *file,
                               const mdl_coverage_t *coverage, int *counts, apr_pool_t *p);

#endif
