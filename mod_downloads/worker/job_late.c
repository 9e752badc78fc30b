/*
 * The job late_email: waits until everything is there that was missing when an order's email was
 * sent, and then queues one more email (core/order/late.h).  All of its work is the database's.
 */
#include "core/order/late.h"
#include "worker/handler.h"

static apr_status_t late_prepare(mdl_db_t *db, mdl_task_t *task)
{
    mdl_late_t late;
    apr_status_t rv = mdl_late_look(db, task->job, &late, task->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    task->job->due_at = late.look_at;
    task->outcome = late.state == MDL_LATE_WAITS ? MDL_TASK_RELEASED : MDL_TASK_SUCCEEDED;
    return APR_EOF;
}

static apr_status_t late_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    return task->outcome == MDL_TASK_SUCCEEDED
               ? mdl_late_settle(db, task->job,
                                 mdl_settings_public_host(task->service->settings, p), p)
               : APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_late = {
    .prepare = late_prepare,
    .alone = 1, /* locks an order */
    .settle = late_settle,
};
