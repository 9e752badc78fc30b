/*
 * The import of a remote file: an asset to be filled, and the job that fills it.
 */
#ifndef MDL_CORE_IMPORT_H
#define MDL_CORE_IMPORT_H

#include "core/asset.h"
#include "core/job.h"

/** Effect: makes a pending asset and queues its import. */
typedef struct {
    apr_int64_t shop_id;
    const char *expected_sha256; /* 64 lower-case hexadecimal digits, or NULL */
    int max_attempts;
    mdl_asset_t asset; /* in: source_url, filename, title, content_type; out: all */
    mdl_job_t job;     /* out */
} mdl_import_t;
apr_status_t mdl_import_queue(mdl_db_t *db, apr_pool_t *p, void *arg);

#endif
