#include "core/order/job_control.h"

#include <apr_time.h>

#include "core/catalog/asset.h"
#include "core/order/lookup.h"
#include "core/version.h"

static apr_status_t job_control_not_found(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 404, "job_not_found", "There is no such job.");
}

static apr_status_t job_find_of_caller(mdl_db_t *db, mdl_job_control_t *control, apr_pool_t *p)
{
    apr_status_t rv = control->shop_id != 0 ? mdl_job_find_of_shop(db, control->shop_id,
                                                                   control->id, &control->job, p)
                                            : mdl_job_find(db, control->id, &control->job, p);

    return rv == APR_ENOENT ? job_control_not_found(control->problem) : rv;
}

/* Reads the job after the statement; if it changed nothing, checks for another version. */
static apr_status_t job_control_read(mdl_db_t *db, mdl_job_control_t *control, int changed,
                                     apr_pool_t *p)
{
    apr_status_t rv = job_find_of_caller(db, control, p);

    return rv == APR_SUCCESS && !changed
               ? mdl_version_check(control->versions, control->job->updated_at, control->problem)
               : rv;
}

/* Ends the wait of the order or asset for a cancelled job. */
static apr_status_t job_control_ended(mdl_db_t *db, const mdl_job_control_t *cancel, apr_pool_t *p)
{
    const mdl_job_t *job = cancel->job;

    if (job->order_id != 0) {
        return mdl_lookup_cancelled(db, cancel->rules, job->order_id, p);
    }
    return job->asset_id != 0 ? mdl_asset_failed(db, job->asset_id, p) : APR_SUCCESS;
}

apr_status_t mdl_job_cancel(mdl_db_t *db, apr_pool_t *p, mdl_job_control_t *cancel)
{
    apr_time_t now = apr_time_now();
    apr_int64_t changed;
    apr_status_t rv;

    mdl_db_note_due(db, now); /* the clean-up */
    rv = mdl_db_exec(db, &changed, p,
                     MDL_Q(JOB_CANCEL, .now = now, .id = cancel->id, .shop_id = cancel->shop_id,
                           MDL_VERSION_ARGS(cancel->versions, p)));
    if (rv != APR_SUCCESS || (rv = job_control_read(db, cancel, changed > 0, p)) != APR_SUCCESS) {
        return rv;
    }
    if (changed > 0) {
        return job_control_ended(db, cancel, p);
    }
    return cancel->job->status == MDL_JOB_CANCELLED
               ? APR_SUCCESS
               : mdl_problem_set(cancel->problem, 409, "job_finished",
                                 "The job has finished already.");
}

/* The asset waits again for this job, provided that no other job fills it. */
static apr_status_t asset_await_again(mdl_db_t *db, const mdl_job_control_t *retry, apr_pool_t *p)
{
    const mdl_job_t *job = retry->job;
    mdl_asset_t *asset;
    mdl_job_t *open;
    apr_status_t rv = mdl_asset_lock(db, job->shop_id, job->asset_id, &asset, retry->problem, p);

    if (rv == MDL_EPROBLEM) {
        return mdl_problem_set(retry->problem, 409, "job_finished", "The job's asset was deleted.");
    }
    if (rv != APR_SUCCESS ||
        (rv = mdl_job_open_of_asset(db, job->asset_id, job->id, &open, p)) != APR_SUCCESS) {
        return rv;
    }
    return open != NULL ? mdl_problem_set(retry->problem, 409, "asset_not_ready",
                                          "Another job of the asset is under way.")
                        : mdl_asset_retry(db, job->asset_id, p);
}

apr_status_t mdl_job_retry(mdl_db_t *db, apr_pool_t *p, mdl_job_control_t *retry)
{
    apr_time_t now = apr_time_now();
    apr_int64_t changed;
    apr_status_t rv;

    mdl_db_note_due(db, now);
    rv = mdl_db_exec(db, &changed, p,
                     MDL_Q(JOB_RETRY, .now = now, .id = retry->id, .shop_id = retry->shop_id,
                           MDL_VERSION_ARGS(retry->versions, p)));
    if (rv != APR_SUCCESS || (rv = job_control_read(db, retry, changed > 0, p)) != APR_SUCCESS) {
        return rv;
    }
    if (changed == 0) {
        return mdl_problem_set(retry->problem, 409, "job_finished",
                               "Only a job that failed or was cancelled can be tried again.");
    }
    if (retry->job->order_id != 0) {
        return mdl_lookup_retried(db, retry->job, retry->problem, p);
    }
    return retry->job->asset_id != 0 ? asset_await_again(db, retry, p) : APR_SUCCESS;
}
