#include "core/import.h"

#include "base/ulid.h"

apr_status_t mdl_import_queue(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_import_t *import = arg;
    apr_status_t rv = mdl_asset_insert(db, import->shop_id, &import->asset, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    import->job = (mdl_job_t){.id = mdl_ulid("job_", p),
                              .type = MDL_JOB_IMPORT,
                              .lane = MDL_LANE_SMALL,
                              .shop_id = import->shop_id,
                              .asset_id = import->asset.id,
                              .source_url = import->asset.source_url,
                              .expected_sha256 = import->expected_sha256,
                              .max_attempts = import->max_attempts};
    return mdl_job_insert(db, &import->job, p);
}
