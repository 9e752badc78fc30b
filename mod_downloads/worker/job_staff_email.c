/*
 * The job staff_email: tells a shop's staff by email what they have to do something about.
 */
#include <apr_strings.h>

#include "core/shop/shop.h"
#include "core/shop/staff_email.h"
#include "worker/handler.h"
#include "worker/message.h"

/* What the template shows beside what was queued: the shop, and where its settings are. */
static void email_add_shop(mdl_json_t *data, const mdl_settings_t *settings, const mdl_shop_t *shop,
                           apr_pool_t *p)
{
    mdl_json_add_string(mdl_json_add_object(data, "shop"), "name", shop->name);
    mdl_json_add_string(
        data, "settings_url",
        settings->settings_url != NULL
            ? apr_psprintf(p, "%s/%" APR_INT64_T_FMT, settings->settings_url, shop->id)
            : NULL);
}

static apr_status_t staff_email_prepare(mdl_db_t *db, mdl_task_t *task)
{
    const mdl_settings_t *settings = task->service->settings;
    const mdl_job_t *job = task->job;
    apr_pool_t *p = task->pool;
    mdl_message_t *message = task->data = apr_pcalloc(p, sizeof *message);
    mdl_message_source_t source = {.shop_id = job->shop_id};
    mdl_staff_email_t email;
    mdl_shop_t *shop;
    apr_status_t rv;

    if ((rv = mdl_staff_email_find(db, job->id, &email, p)) == APR_ENOENT) {
        return mdl_message_unsent(task, MDL_TASK_FAILED, "gone", "The email is kept no longer.");
    }
    if (rv != APR_SUCCESS || (rv = mdl_shop_find(db, job->shop_id, &shop, p)) != APR_SUCCESS) {
        return rv;
    }
    email_add_shop(email.data, settings, shop, p);
    source.template = email.template;
    source.data = email.data;
    source.mime = (mdl_mime_mail_t){
        .from = settings->mail_from,
        .to = email.to,
        .message_id = apr_pstrcat(p, job->id, "@", mdl_settings_public_host(settings, p), NULL),
        .date = job->created_at};
    message->sender = settings->mail_from;
    mdl_template_cache_refresh(task->templates);
    return mdl_message_build(task, message, &source, p);
}

static void staff_email_start(mdl_task_t *task)
{
    mdl_message_send(task, task->data);
}

static apr_status_t staff_email_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    return task->outcome == MDL_TASK_SUCCEEDED || task->outcome == MDL_TASK_FAILED
               ? mdl_staff_email_delete(db, task->job->id, p)
               : APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_staff_email = {
    .prepare = staff_email_prepare,
    .start = staff_email_start,
    .settle = staff_email_settle,
};
