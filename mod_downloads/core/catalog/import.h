/*
 * The import of a remote file: an asset to be filled, and the job that fills it.
 */
#ifndef MDL_CORE_CATALOG_IMPORT_H
#define MDL_CORE_CATALOG_IMPORT_H

#include "core/catalog/asset.h"
#include "core/job.h"

typedef struct {
    apr_int64_t shop_id;
    const char *expected_sha256; /* 64 lower-case hexadecimal digits, or NULL */
    int max_attempts;
    mdl_asset_t asset; /* in: source_url, filename, title, content_type, category_id; out: all */
    mdl_job_t job;     /* out */
    mdl_problem_t *problem;
} mdl_import_t;

/** Effect: makes a pending asset and queues its import.  Refused with 422 unknown_reference. */
apr_status_t mdl_import_queue(mdl_db_t *db, apr_pool_t *p, mdl_import_t *import);

/** Locks an asset that is to get new bytes; one that failed is pending again.  Refused: 404
    asset_not_found, 409 asset_not_ready when it is waiting for bytes already. */
apr_status_t mdl_version_await(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id,
                               mdl_asset_t **asset, mdl_problem_t *problem, apr_pool_t *p);

/** Effect: queues the import of new bytes for an asset, which keeps what it has until they are
   there.  Refused as mdl_version_await is. */
typedef struct {
    apr_int64_t asset_id;
    const char *source_url;
    mdl_import_t import; /* in: shop_id, expected_sha256, max_attempts, problem; out: asset, job */
} mdl_version_t;
apr_status_t mdl_version_queue(mdl_db_t *db, apr_pool_t *p, mdl_version_t *version);

#endif
