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

apr_status_t mdl_version_queue(mdl_db_t *db, apr_pool_t *p, mdl_version_t *version)
{
    mdl_import_t *import = &version->import;
    mdl_entity_ref_t ref = {.shop_id = import->shop_id,
                            .id = version->asset_id,
                            .versions = version->versions,
                            .problem = import->problem};
    apr_status_t rv = mdl_asset_await_bytes(db, &ref, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    import->asset = *(const mdl_asset_t *)ref.entity;
    return import_queue(db, import, version->source_url, p);
}
