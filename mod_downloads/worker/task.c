#include "worker/task.h"

#include "base/clock.h"
#include "core/job_source.h"
#include "core/catalog/asset.h"
#include "core/catalog/blob.h"
#include "core/shop/notice.h"

int mdl_task_withdrawn(const mdl_task_t *task)
{
    return atomic_load(&task->blocked) || atomic_load(&task->lost) ||
           mdl_clock_monotonic() > atomic_load(&task->leased_until);
}

void mdl_task_progress(mdl_task_t *task)
{
    task->job->bytes_received = atomic_load(&task->received);
    task->job->bytes_total = atomic_load(&task->total);
    task->job->validator = atomic_load(&task->validator);
}

apr_status_t mdl_task_asset_failed(mdl_db_t *db, const mdl_task_t *task, apr_pool_t *p)
{
    const mdl_job_t *job = task->job;
    mdl_json_t *data = mdl_json_object(p);
    mdl_notice_t notice = {.shop_id = job->shop_id, .type = MDL_NOTICE_IMPORT_FAILED};
    apr_status_t rv = mdl_asset_failed(db, job->asset_id, p);

    mdl_json_add_int(data, "asset_id", job->asset_id);
    mdl_json_add_string(data, "job_id", job->id);
    mdl_json_add_string(data, "error_code", job->error_code);
    notice.data = mdl_json_text(data, NULL, p);
    return rv == APR_SUCCESS ? mdl_notice_add(db, &notice, p) : rv;
}

apr_status_t mdl_task_asset_ready(mdl_db_t *db, mdl_task_t *task, const char *content_type,
                                  apr_pool_t *p)
{
    mdl_job_t *job = task->job;
    mdl_asset_bytes_t bytes = {.blob = *task->stored,
                               .content_type = content_type,
                               .source_url = mdl_source_shown(job->source_url, p),
                               .job_id = job->id,
                               .quota = task->service->settings->storage_quota,
                               .asked = task->asked};
    apr_status_t rv = mdl_asset_ready(db, job->asset_id, &bytes, p);

    if (rv == APR_ENOENT) {
        return mdl_blob_leave(db, task->stored, p); /* it was deleted in the same moment */
    }
    if (rv != APR_ENOSPC) {
        task->kept = bytes.held;
        return rv;
    }
    job->error_code = MDL_QUOTA_CODE;
    job->error_message = MDL_QUOTA_MESSAGE;
    if ((rv = mdl_job_fail(db, job, p)) != APR_SUCCESS ||
        (rv = mdl_task_asset_failed(db, task, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_blob_leave(db, task->stored, p);
}
