#include "worker/outcome.h"

#include <apr_time.h>

#include "base/log.h"
#include "core/catalog/blob.h"

#define MAX_DOUBLINGS 10

void mdl_outcome_progress(mdl_task_t *task)
{
    task->job->bytes_received = atomic_load(&task->received);
    task->job->bytes_total = atomic_load(&task->total);
    task->job->validator = atomic_load(&task->validator);
}

static apr_interval_time_t back_off(const mdl_task_t *task)
{
    int doublings = task->job->attempts - 1;

    if (task->retry_after != 0) {
        return task->retry_after;
    }
    return task->service->settings->retry_delay
           << (doublings > MAX_DOUBLINGS ? MAX_DOUBLINGS : doublings);
}

static apr_status_t write_outcome(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    mdl_job_t *job = task->job;
    apr_status_t rv;

    mdl_outcome_progress(task);
    if (task->outcome == MDL_TASK_RETRY && job->attempts >= job->max_attempts) {
        task->outcome = MDL_TASK_FAILED;
    }
    switch (task->outcome) {
    case MDL_TASK_SUCCEEDED:
        job->status = "succeeded";
        job->error_code = job->error_message = NULL; /* of an attempt before */
        rv = mdl_job_finish(db, job, p);
        break;
    case MDL_TASK_FAILED:
        job->status = "failed";
        rv = mdl_job_finish(db, job, p);
        break;
    case MDL_TASK_RETRY:
        job->due_at = apr_time_now() + back_off(task);
        rv = mdl_job_retry_later(db, job, p);
        break;
    case MDL_TASK_RELEASED:
        rv = mdl_job_release(db, job, p);
        break;
    default:
        return APR_SUCCESS;
    }
    return rv == APR_SUCCESS && task->handler != NULL ? task->handler->settle(db, task, p) : rv;
}

apr_status_t mdl_outcome_write(mdl_db_t *db, apr_pool_t *p, mdl_task_t *first)
{
    for (mdl_task_t *task = first; task != NULL; task = task->next) {
        apr_status_t rv = write_outcome(db, task, p);

        if (rv == APR_ENOENT) {
            mdl_log(MDL_LOG_NOTICE, 0,
                    "MDL0323: job %s was cancelled, or taken over by another worker",
                    task->job->id);
            rv = mdl_blob_leave(db, task->stored, p);
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

apr_status_t mdl_outcome_ready(mdl_db_t *db, const mdl_task_t *task, const char *content_type,
                               apr_pool_t *p)
{
    mdl_job_t *job = task->job;
    const mdl_asset_bytes_t bytes = {.blob = *task->stored,
                                     .content_type = content_type,
                                     .source_url = job->source_url,
                                     .job_id = job->id,
                                     .quota = task->service->settings->storage_quota};
    apr_status_t rv = mdl_asset_ready(db, job->asset_id, &bytes, p);

    if (rv == APR_ENOENT) {
        return mdl_blob_leave(db, task->stored, p); /* it was deleted in the same moment */
    }
    if (rv != APR_ENOSPC) {
        return rv == APR_SUCCESS ? mdl_blob_check(task->storage, task->stored->sha256, p) : rv;
    }
    job->error_code = MDL_QUOTA_CODE;
    job->error_message = MDL_QUOTA_MESSAGE;
    if ((rv = mdl_job_fail(db, job, p)) != APR_SUCCESS ||
        (rv = mdl_asset_failed(db, job->asset_id, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_blob_leave(db, task->stored, p);
}
