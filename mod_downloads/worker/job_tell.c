/*
 * The job tell_buyers: looks for the buyers of a file's new version, a batch for each claim, as
 * buyers_move does (core/order/news.h).
 */
#include "core/order/news.h"
#include "worker/handler.h"

static apr_status_t tell_prepare(mdl_db_t *db, mdl_task_t *task)
{
    mdl_news_batch_t *batch;
    apr_status_t rv = mdl_news_look(db, task->job, &batch, task->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    task->data = batch;
    task->outcome = batch == NULL ? MDL_TASK_SUCCEEDED : MDL_TASK_RELEASED;
    return APR_EOF;
}

static apr_status_t tell_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    return task->data != NULL && task->outcome == MDL_TASK_RELEASED
               ? mdl_news_note(db, task->data, p)
               : APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_tell = {
    .prepare = tell_prepare,
    .alone = 1, /* locks addresses, as the queueing of their emails does */
    .settle = tell_settle,
};
