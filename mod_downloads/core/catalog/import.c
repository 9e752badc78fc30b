#include "core/catalog/import.h"

#include <string.h>

#include "base/http/url.h"
#include "base/ulid.h"
#include "core/job_source.h"

static apr_status_t import_queue(mdl_db_t *db, mdl_import_t *import, const char *source_url,
                                 apr_pool_t *p)
{
    const char *id = mdl_ulid("job_", p);

    import->job = (mdl_job_t){.id = id,
                              .type = MDL_JOB_IMPORT,
                              .lane = MDL_LANE_SMALL,
                              .shop_id = import->shop_id,
                              .asset_id = import->asset.id,
                              .source_url = mdl_source_seal(import->secret, id, source_url, p),
                              .expected_sha256 = import->expected_sha256,
                              .max_attempts = import->max_attempts};
    return mdl_job_insert(db, &import->job, p);
}

void mdl_import_name(mdl_asset_t *asset, const char *last_segment)
{
    if (asset->filename == NULL) {
        asset->filename_guessed = 1;
        asset->title_guessed = asset->title == NULL;
        asset->filename = last_segment != NULL && mdl_asset_filename_valid(last_segment)
                              ? last_segment
                              : "download";
    }
    if (asset->title == NULL) {
        asset->title = asset->filename;
    }
}

apr_status_t mdl_import_queue(mdl_db_t *db, apr_pool_t *p, mdl_import_t *import)
{
    const char *source_url = import->asset.source_url;
    apr_status_t rv;

    import->asset.source_url = mdl_source_shown(source_url, p);
    rv = mdl_asset_insert(db, import->shop_id, &import->asset, import->problem, p);
    import->asset.source_url = source_url; /* it may run again */
    if (rv == APR_SUCCESS) {
        rv = import_queue(db, import, source_url, p);
    }
    return rv;
}

apr_status_t mdl_version_queue(mdl_db_t *db, apr_pool_t *p, mdl_version_t *version)
{
    mdl_import_t *import = &version->import;
    mdl_entity_ref_t ref = {.shop_id = import->shop_id,
                            .id = version->asset_id,
                            .versions = version->versions,
                            .problem = import->problem};
    apr_status_t rv = mdl_asset_await_version(db, &ref, &version->news, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    import->asset = *(const mdl_asset_t *)ref.entity;
    return import_queue(db, import, version->source_url, p);
}

apr_status_t mdl_import_again(mdl_db_t *db, apr_pool_t *p, mdl_import_again_t *again)
{
    const char *url = again->version.source_url;
    mdl_problem_t *problem = again->version.import.problem;

    if (url == NULL) {
        return mdl_problem_set(problem, 409, "no_source",
                               "It was uploaded: nobody else has its bytes.");
    }
    if (!mdl_source_is_whole(url)) {
        return mdl_problem_set(problem, 409, "no_source",
                               "The address that it came from had a query, which is not kept.");
    }
    if (mdl_http_url_check(again->policy, url, NULL, NULL, p) != MDL_HTTP_OK) {
        return mdl_problem_set(problem, 409, "source_host_not_allowed",
                               "Imports from where it came from are not allowed any more.");
    }
    return mdl_version_queue(db, p, &again->version);
}
