/*
 * The job buyers_move: gives a product to the orders that have another (core/order/move.h).  All of
 * its work is the database's, so the control thread does it, a batch for each claim, in the
 * transaction that releases the job.  In between, other lanes and other shops have their turns.
 */
#include "core/order/move.h"
#include "worker/handler.h"

static apr_status_t move_prepare(mdl_db_t *db, mdl_task_t *task)
{
    mdl_job_t *job = task->job;
    mdl_move_batch_t *batch;
    mdl_problem_t problem = {0};
    apr_time_t wait_until = 0;
    apr_status_t rv = mdl_move_read(db, job, &batch, &wait_until, &problem, task->pool);

    if (rv == MDL_EPROBLEM) {
        job->error_code = problem.code;
        job->error_message = problem.message;
        task->outcome = MDL_TASK_FAILED;
        return APR_EOF;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    job->error_code = job->error_message = NULL; /* of an earlier attempt */
    job->due_at = wait_until;
    task->data = batch;
    task->outcome = batch == NULL && wait_until == 0 ? MDL_TASK_SUCCEEDED : MDL_TASK_RELEASED;
    return APR_EOF;
}

static apr_status_t move_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    return task->data != NULL && task->outcome == MDL_TASK_RELEASED
               ? mdl_move_give(db, task->data, task->service->settings, p)
               : APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_move = {
    .prepare = move_prepare,
    .alone = 1,
    .settle = move_settle,
};
