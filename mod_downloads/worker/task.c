#include "worker/task.h"

#include <apr_strings.h>

#include "base/clock.h"
#include "core/job_source.h"
#include "core/catalog/asset.h"
#include "core/catalog/blob.h"
#include "core/shop/event.h"
#include "core/shop/notice.h"

int mdl_task_withdrawn(const mdl_task_t *task)
{
    return atomic_load(&task->blocked) || atomic_load(&task->lost) ||
           mdl_clock_monotonic() > atomic_load(&task->leased_until);
}

void mdl_task_progress(mdl_task_t *task)
{
    task->job->bytes_received = atomic_load(&task->mark->received);
    if (task->job->bytes_received > task->mark->before) {
        task->job->interruptions = 0;
    }
    task->job->bytes_total = atomic_load(&task->total);
    task->job->validator = atomic_load(&task->validator);
    task->job->written = atomic_load(&task->written);
}

void mdl_task_begun(mdl_task_t *task, mdl_begun_state_t state)
{
    atomic_store(&task->mark->state, state);
}

apr_status_t mdl_task_asset_failed(mdl_db_t *db, const mdl_task_t *task, apr_pool_t *p)
{
    const mdl_job_t *job = task->job;
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {.shop_id = job->shop_id, .type = MDL_EVENT_IMPORT_FAILED};
    apr_status_t rv = mdl_asset_failed(db, job->asset_id, p);

    mdl_json_add_int(data, "asset_id", job->asset_id);
    mdl_json_add_string(data, "job_id", job->id);
    mdl_json_add_string(data, "error_code", job->error_code);
    event.data = mdl_json_text(data, NULL, p);
    if (rv == APR_SUCCESS) {
        rv = mdl_event_add(db, &event, p);
    }
    return rv == APR_SUCCESS ? mdl_notice_add(db, MDL_NOTICE_IMPORT_FAILED, job->shop_id, p) : rv;
}

/* Makes a job fail although its bytes are stored. */
static apr_status_t task_fail_stored(mdl_db_t *db, mdl_task_t *task, const char *code,
                                     const char *message, apr_pool_t *p)
{
    apr_status_t rv;

    task->job->error_code = code;
    task->job->error_message = message;
    if ((rv = mdl_job_fail(db, task->job, p)) != APR_SUCCESS ||
        (rv = mdl_task_asset_failed(db, task, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_blob_leave(db, task->stored, p);
}

apr_status_t mdl_task_asset_ready(mdl_db_t *db, mdl_task_t *task, const mdl_task_origin_t *origin,
                                  apr_pool_t *p)
{
    mdl_job_t *job = task->job;
    mdl_asset_bytes_t bytes = {.blob = *task->stored,
                               .content_type = origin->content_type,
                               .filename = origin->filename,
                               .source_url = mdl_source_shown(job->source_url, p),
                               .job_id = job->id,
                               .quota = task->service->settings->storage_quota,
                               .asked = task->asked};
    apr_status_t rv = mdl_asset_ready(db, job->asset_id, &bytes, p);

    if (rv == APR_ENOENT) {
        return mdl_blob_leave(db, task->stored, p); /* it was deleted meanwhile */
    }
    if (rv == APR_EMISMATCH) {
        return task_fail_stored(
            db, task, "source_is_html",
            apr_pstrcat(p, origin->host,
                        " sent a page of HTML in place of the file, as share links and pages for "
                        "signing in do. Import from the address of the file itself; if the page is "
                        "the file, give content_type as text/html.",
                        NULL),
            p);
    }
    if (rv == APR_ENOSPC) {
        return task_fail_stored(db, task, MDL_QUOTA_CODE, MDL_QUOTA_MESSAGE, p);
    }
    task->kept = bytes.held;
    return rv;
}
