#include "core/download/delivered.h"

#include "core/download/session.h"

typedef struct {
    mdl_coverage_t *coverage;
    apr_int64_t bytes; /* of each session what it covered */
} sum_t;

static apr_status_t delivered_find(mdl_db_t *db, const mdl_delivered_t *file, sum_t *sum,
                                   apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_ASSIGNMENT_LOCK, &row, p,
                                        MDL_ARGS(mdl_int(file->assignment_id)));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(
            db, MDL_Q_DOWNLOAD_PARTIAL_FIND, &row, p,
            MDL_ARGS(mdl_int(file->assignment_id), mdl_int(file->asset_id), mdl_text(file->etag)));
    }
    sum->coverage = mdl_coverage_read(rv == APR_SUCCESS ? mdl_rows_text(row, 0) : "", p);
    sum->bytes = rv == APR_SUCCESS ? mdl_rows_int(row, 1) : 0;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t delivered_forget(mdl_db_t *db, const mdl_delivered_t *file, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_DOWNLOAD_PARTIAL_REMOVE, NULL, p,
                       MDL_ARGS(mdl_int(file->assignment_id), mdl_int(file->asset_id)));
}

apr_status_t mdl_delivered_complete(mdl_db_t *db, const mdl_delivered_t *file,
                                    const mdl_coverage_t *coverage, int *whole, apr_pool_t *p)
{
    sum_t sum;
    apr_status_t rv;

    *whole = mdl_coverage_is_whole(coverage, file->size);
    if (*whole || (rv = delivered_find(db, file, &sum, p)) != APR_SUCCESS) {
        return *whole ? APR_SUCCESS : rv;
    }
    mdl_coverage_join(sum.coverage, coverage);
    *whole = mdl_coverage_is_whole(sum.coverage, file->size);
    return *whole ? delivered_forget(db, file, p) : APR_SUCCESS;
}

apr_status_t mdl_delivered_add(mdl_db_t *db, const mdl_delivered_t *file,
                               const mdl_coverage_t *coverage, int *counts, apr_pool_t *p)
{
    sum_t sum;
    apr_status_t rv;

    *counts = mdl_coverage_is_whole(coverage, file->size);
    if (*counts || coverage->nelts == 0) {
        return *counts ? delivered_forget(db, file, p) : APR_SUCCESS;
    }
    if ((rv = delivered_find(db, file, &sum, p)) != APR_SUCCESS) {
        return rv;
    }
    mdl_coverage_join(sum.coverage, coverage);
    sum.bytes += mdl_coverage_bytes(coverage);
    *counts = mdl_coverage_is_whole(sum.coverage, file->size) ||
              sum.bytes >= MDL_SESSION_FACTOR * file->size;
    return *counts ? delivered_forget(db, file, p)
                   : mdl_db_exec(db, MDL_Q_DOWNLOAD_PARTIAL_KEEP, NULL, p,
                                 MDL_ARGS(mdl_int(file->assignment_id), mdl_int(file->asset_id),
                                          mdl_text(file->etag),
                                          mdl_text(mdl_coverage_text(sum.coverage, p)),
                                          mdl_int(sum.bytes)));
}
