#include "core/catalog/import.h"

#include <string.h>

#include "base/ulid.h"

static apr_status_t import_queue(mdl_db_t *db, mdl_import_t *import, const char *source_url,
                                 apr_pool_t *p)
{
    import->job = (mdl_job_t){.id = mdl_ulid("job_", p),
                              .type = MDL_JOB_IMPORT,
                              .lane = MDL_LANE_SMALL,
                              .shop_id = import->shop_id,
                              .asset_id = import->asset.id,
                              .source_url = source_url,
                              .expected_sha256 = import->expected_sha256,
                              .max_attempts = import->max_attempts};
    return mdl_job_insert(db, &import->job, p);
}

apr_status_t mdl_import_queue(mdl_db_t *db, apr_pool_t *p, mdl_import_t *import)
{
    apr_status_t rv = mdl_asset_insert(db, import->shop_id, &import->asset, import->problem, p);

    return rv == APR_SUCCESS ? import_queue(db, import, import->asset.source_url, p) : rv;
}

/* Two open jobs for one asset would race to set its content. */
static apr_status_t check_not_waiting(mdl_db_t *db, const mdl_asset_t *asset,
                                      mdl_problem_t *problem, apr_pool_t *p)
{
    int open = 1;
    apr_status_t rv = asset->status != MDL_ASSET_PENDING
                          ? mdl_job_open_of_asset(db, asset->id, NULL, &open, p)
                          : APR_SUCCESS;

    return rv == APR_SUCCESS && open
               ? mdl_problem_set(problem, 409, "asset_not_ready",
                                 "The asset is waiting for the bytes of another job.")
               : rv;
}

apr_status_t mdl_version_await(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id,
                               mdl_asset_t **asset, mdl_problem_t *problem, apr_pool_t *p)
{
    apr_status_t rv = mdl_asset_lock(db, shop_id, id, asset, problem, p);

    if (rv == APR_SUCCESS) {
        rv = check_not_waiting(db, *asset, problem, p);
    }
    if (rv == APR_SUCCESS && (*asset)->status == MDL_ASSET_FAILED &&
        (rv = mdl_asset_retry(db, id, p)) == APR_SUCCESS) {
        rv = mdl_asset_find(db, shop_id, id, asset, problem, p);
    }
    return rv;
}

apr_status_t mdl_version_queue(mdl_db_t *db, apr_pool_t *p, mdl_version_t *version)
{
    mdl_import_t *import = &version->import;
    mdl_asset_t *asset;
    apr_status_t rv = mdl_version_await(db, import->shop_id, version->asset_id, &asset,
                                        import->problem, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    import->asset = *asset;
    return import_queue(db, import, version->source_url, p);
}
