#include "core/catalog/version_news.h"

#include "base/ulid.h"
#include "core/job.h"

#define ATTEMPTS 5

apr_status_t mdl_version_tell(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t asset_id, int version,
                              apr_pool_t *p)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_TELL,
                     .lane = MDL_LANE_ORDERS,
                     .shop_id = shop_id,
                     .max_attempts = ATTEMPTS};
    apr_status_t rv = mdl_job_insert(db, &job, p);

    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p,
                                           MDL_Q(NEWS_FILL_INSERT, .job_id = job.id,
                                                 .asset_id = asset_id, .version = version))
                             : rv;
}
