/*
 * The job upload_verification (contract, section 9): an upload that came in several pieces is read,
 * digested and becomes its asset's blob.  The bytes could not be sent again, so the partial file
 * stays until the job has ended; then maintenance removes it.
 */
#include <string.h>

#include <apr_time.h>

#include "base/log.h"
#include "core/catalog/upload.h"
#include "worker/handler.h"
#include "worker/runner.h"

#define PARTIAL_IN_USE apr_time_from_msec(500)

typedef struct {
    mdl_upload_t *upload;
    mdl_partial_t *partial;
    mdl_blob_t blob;
} verify_t;

static apr_status_t verify_prepare(mdl_db_t *db, mdl_task_t *task)
{
    verify_t *verify = apr_pcalloc(task->pool, sizeof *verify);

    task->data = verify;
    return mdl_upload_find(db, task->job->upload_id, &verify->upload, task->pool);
}

/* Called after each MDL_PARTIAL_STEP. */
static int verify_is_stopping(void *baton)
{
    mdl_task_t *task = baton;
    long long received = atomic_load(&task->mark->received) + MDL_PARTIAL_STEP;
    long long total = atomic_load(&task->total);

    atomic_store(&task->mark->received, received < total ? received : total);
    return mdl_runner_stopping(task->runner) || atomic_load(&task->lost);
}

static void verify_break_off(mdl_task_t *task)
{
    mdl_runner_done(task, atomic_load(&task->lost) ? MDL_TASK_ABANDONED : MDL_TASK_RELEASED);
}

static void verify_disk_failed(mdl_task_t *task, apr_status_t rv)
{
    mdl_log(MDL_LOG_ERR, rv, "MDL0304: job %s: can't read or keep the upload %s in %s",
            mdl_job_name(task->job, task->pool), task->job->upload_id,
            task->service->settings->storage.folder);
    mdl_runner_done_with(task, MDL_TASK_RETRY, "insufficient_storage",
                         "The service could not read or keep the file.");
}

static void verify_compare(mdl_task_t *task)
{
    verify_t *verify = task->data;
    const char *expected = task->job->expected_sha256;
    apr_status_t rv = mdl_partial_digest(verify->partial, &verify->blob, task->pool);

    if (rv == APR_SUCCESS && expected != NULL && strcmp(expected, verify->blob.sha256) != 0) {
        mdl_partial_keep(verify->partial);
        mdl_runner_done_with(task, MDL_TASK_FAILED, "checksum_mismatch",
                             "The file's SHA-256 is not the one that was given.");
        return;
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_partial_publish(verify->partial, &verify->blob);
    } else {
        mdl_partial_keep(verify->partial);
    }
    if (rv != APR_SUCCESS) {
        verify_disk_failed(task, rv);
        return;
    }
    task->stored = &verify->blob;
    atomic_store(&task->mark->received, verify->blob.size);
    mdl_runner_done(task, MDL_TASK_SUCCEEDED);
}

static void verify_start(mdl_task_t *task)
{
    verify_t *verify = task->data;
    apr_status_t rv;

    atomic_store(&task->total, verify->upload->size);
    atomic_store(&task->mark->received, 0);
    rv = mdl_partial_open(&verify->partial, task->storage, verify->upload->id, verify_is_stopping,
                          task, task->pool);
    if (APR_STATUS_IS_EINTR(rv)) {
        verify_break_off(task);
    } else if (APR_STATUS_IS_EAGAIN(rv)) {
        task->job->due_at = apr_time_now() + PARTIAL_IN_USE;
        mdl_runner_done(task, MDL_TASK_RELEASED);
    } else if (rv != APR_SUCCESS) {
        verify_disk_failed(task, rv);
    } else if (mdl_partial_size(verify->partial) != verify->upload->size) {
        mdl_partial_discard(verify->partial);
        mdl_runner_done_with(task, MDL_TASK_FAILED, "upload_incomplete",
                             "The upload's bytes are no longer there; upload the file again.");
    } else {
        verify_compare(task);
    }
}

static apr_status_t verify_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    const verify_t *verify = task->data;

    switch (task->outcome) {
    case MDL_TASK_SUCCEEDED:
        return mdl_task_asset_ready(
            db, task, &(mdl_task_origin_t){.content_type = verify->upload->content_type}, p);
    case MDL_TASK_FAILED:
        return mdl_task_asset_failed(db, task, p);
    default:
        return APR_SUCCESS;
    }
}

const mdl_job_handler_t mdl_handler_verify = {
    .prepare = verify_prepare,
    .start = verify_start,
    .settle = verify_settle,
};
