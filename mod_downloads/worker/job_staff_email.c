/*
 * The job staff_email: emails a shop's staff about something that they must act on.
 */
#include <string.h>

#include <apr_strings.h>

#include "base/log.h"
#include "base/text/present.h"
#include "core/download/signed_url.h"
#include "core/order/email_data.h"
#include "core/shop/shop.h"
#include "core/shop/staff_address.h"
#include "core/shop/staff_email.h"
#include "worker/handler.h"
#include "worker/message.h"

/* The link is made here, so that a stolen database contains none. */
static void email_add_confirm(mdl_json_t *data, const mdl_task_t *task, const char *to,
                              apr_pool_t *p)
{
    const mdl_signed_confirm_t confirm = {.shop_id = task->job->shop_id,
                                          .address = to,
                                          .expires_at = task->job->created_at +
                                                        MDL_STAFF_ADDRESS_EXPIRES};

    mdl_json_add_string(data, "confirm_url",
                        mdl_signed_url_confirm(task->service->secret,
                                               task->service->settings->public_url, &confirm, p));
    mdl_present_date(data, "expires", confirm.expires_at);
}

static void log_last(const mdl_task_t *task, const mdl_staff_email_t *email)
{
    if (task->job->attempts == 1 && mdl_json_bool(mdl_json_member(email->data, "last"))) {
        mdl_log(MDL_LOG_WARNING, 0,
                "MDL0373: the staff of shop %" APR_INT64_T_FMT
                " have been sent as many emails as a day allows; what else needs them is in the "
                "settings only",
                task->job->shop_id);
    }
}

static void email_of_staff(mdl_message_source_t *source, const mdl_task_t *task,
                           const mdl_staff_email_t *email, const mdl_shop_t *shop)
{
    mdl_email_add_shop(email->data, shop, task->service->settings->settings_url, task->pool);
    if (strcmp(email->template, MDL_STAFF_EMAIL_CONFIRM) == 0) {
        email_add_confirm(email->data, task, email->to, task->pool);
    }
    log_last(task, email);
    source->letter.template = email->template;
    source->letter.data = email->data;
}

/* A test of the delivery email comes from whom its customers would see. */
static void email_of_test(mdl_message_source_t *source, const mdl_task_t *task,
                          const mdl_staff_email_t *email, const mdl_shop_t *shop)
{
    const char *template = mdl_json_string(mdl_json_member(email->data, "template"));

    source->is_test = 1;
    source->letter.locale = mdl_json_string(mdl_json_member(email->data, "language"));
    mdl_email_sample(&source->letter, template, shop, task->service->secret,
                     task->service->settings, task->pool);
    if (strcmp(template, *mdl_email_sample_names) == 0) {
        source->mime.from_name = shop->sender_name != NULL ? shop->sender_name : shop->name;
        source->mime.reply_to = shop->reply_to != NULL ? shop->reply_to : shop->email;
    }
}

static apr_status_t staff_email_prepare(mdl_db_t *db, mdl_task_t *task)
{
    const mdl_settings_t *settings = task->service->settings;
    const mdl_job_t *job = task->job;
    apr_pool_t *p = task->pool;
    mdl_message_t *message = task->data = apr_pcalloc(p, sizeof *message);
    mdl_message_source_t source = {.letter.shop_id = job->shop_id};
    mdl_staff_email_t email;
    mdl_shop_t *shop;
    apr_status_t rv;

    if ((rv = mdl_staff_email_find(db, job->shop_id, job->id, &email, p)) == APR_ENOENT) {
        return mdl_message_unsent(task, MDL_TASK_FAILED, "gone", "The email is kept no longer.");
    }
    if (rv == APR_SUCCESS && !email.wanted) {
        return mdl_message_unsent(task, MDL_TASK_FAILED, "not_confirmed",
                                  "The address is not confirmed, or was removed.");
    }
    if (rv != APR_SUCCESS || (rv = mdl_shop_find(db, job->shop_id, &shop, p)) != APR_SUCCESS) {
        return rv;
    }
    if (strcmp(email.template, MDL_STAFF_EMAIL_TEST) == 0) {
        email_of_test(&source, task, &email, shop);
    } else {
        email_of_staff(&source, task, &email, shop);
    }
    source.mime = (mdl_mime_mail_t){
        .from_name = source.mime.from_name,
        .reply_to = source.mime.reply_to,
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
