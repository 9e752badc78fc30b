/*
 * The job customer_merge: moves the orders that merges of a shop's customers have left
 * (core/order/merge.h), some for each claim, as the job buyers_move does.
 */
#include "core/order/merge.h"
#include "worker/handler.h"

static apr_status_t merge_prepare(mdl_db_t *db, mdl_task_t *task)
{
    apr_int64_t *id = apr_pcalloc(task->pool, sizeof *id);
    apr_status_t rv = mdl_merge_next(db, task->job->shop_id, id, task->pool);

    if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        return rv;
    }
    task->data = id;
    task->job->due_at = 0;                                   /* now */
    task->job->error_code = task->job->error_message = NULL; /* of an earlier attempt */
    task->outcome = rv == APR_ENOENT ? MDL_TASK_SUCCEEDED : MDL_TASK_RELEASED;
    return APR_EOF;
}

static apr_status_t merge_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    const apr_int64_t *id = task->data;

    return id != NULL && task->outcome == MDL_TASK_RELEASED
               ? mdl_merge_go_on(db, task->job->shop_id, *id, p)
               : APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_merge = {
    .prepare = merge_prepare,
    .alone = 1,
    .settle = merge_settle,
};
