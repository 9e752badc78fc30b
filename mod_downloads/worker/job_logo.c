/*
 * The job logo: makes a shop's logo of the image that the shop has sent, in a process of its own
 * (base/image/logo.h), for which the lane's thread waits.
 */
#include "base/log.h"
#include "core/shop/logo.h"
#include "worker/handler.h"
#include "worker/runner.h"

typedef struct {
    void *image;
    apr_size_t length;
    mdl_logo_image_t made;
} logo_t;

static apr_status_t logo_prepare(mdl_db_t *db, mdl_task_t *task)
{
    logo_t *logo = task->data = apr_pcalloc(task->pool, sizeof *logo);
    apr_status_t rv = mdl_logo_image_find(db, task->job->shop_id, task->job->id, &logo->image,
                                          &logo->length, task->pool);

    if (rv == APR_ENOENT) { /* another image or a deletion came later */
        task->outcome = MDL_TASK_SUCCEEDED;
        return APR_EOF;
    }
    return rv;
}

static void logo_start(mdl_task_t *task)
{
    logo_t *logo = task->data;
    apr_status_t rv = mdl_logo_image_make(logo->image, logo->length, &logo->made, task->pool);

    if (rv != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, rv,
                "MDL0378: job %s: the process that makes a logo of an image could not be started, "
                "confined or waited for",
                mdl_job_name(task->job, task->pool));
        mdl_runner_done_with(task, MDL_TASK_RETRY, "logo_not_made",
                             "The service could not look at the image.");
    } else if (logo->made.fault != MDL_IMAGE_GOOD) {
        mdl_runner_done_with(task, MDL_TASK_FAILED, "invalid_logo",
                             mdl_logo_fault_text(logo->made.fault));
    } else {
        mdl_runner_done(task, MDL_TASK_SUCCEEDED);
    }
}

static apr_status_t logo_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    const logo_t *logo = task->data;
    int looked = logo != NULL && (logo->made.png != NULL || logo->made.fault != MDL_IMAGE_GOOD);

    return task->outcome == MDL_TASK_SUCCEEDED || task->outcome == MDL_TASK_FAILED
               ? mdl_logo_made(db, task->job->shop_id, task->job->id, looked ? &logo->made : NULL,
                               p)
               : APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_logo = {
    .prepare = logo_prepare,
    .start = logo_start,
    .settle = logo_settle,
};
