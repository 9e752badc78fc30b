/*
 * The job staff_email: emails a shop's staff about something that they must act on.
 */
#include <string.h>

#include <apr_strings.h>

#include "base/log.h"
#include "base/text/present.h"
#include "core/download/signed_url.h"
#include "core/order/email_data.h"
#include "core/order/help.h"
#include "core/shop/member.h"
#include "core/shop/shop.h"
#include "core/shop/staff_address.h"
#include "core/shop/staff_email.h"
#include "worker/handler.h"
#include "worker/message.h"

#define HELP_LINKS_MAX 10 /* customers who ask for help, in an email */

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

/* The links to answer customers, likewise; the member may have lost the role. */
static apr_status_t email_add_help(mdl_db_t *db, mdl_json_t *data, const mdl_task_t *task,
                                   apr_pool_t *p)
{
    mdl_json_t *help = mdl_json_member(data, "help");
    mdl_signed_help_t link = {.shop_id = task->job->shop_id,
                              .user = mdl_json_string(mdl_json_member(data, "user"))};
    mdl_role_t role = MDL_ROLE_READ_ONLY;
    apr_array_header_t *requests;
    mdl_json_t *list;
    apr_status_t rv;

    if (mdl_json_type(help) != MDL_JSON_OBJECT || link.user == NULL) {
        return APR_SUCCESS;
    }
    rv = mdl_member_role(db, link.user, link.shop_id, &role, p);
    if (rv != APR_SUCCESS || role < MDL_ROLE_STAFF) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    rv = mdl_help_find_waiting(db, link.shop_id, HELP_LINKS_MAX, &requests, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    list = mdl_json_add_array(help, "requests");
    mdl_json_add_bool(help, "has_requests", requests->nelts > 0);
    for (int i = 0; i < requests->nelts; i++) {
        const mdl_help_request_t *request = &APR_ARRAY_IDX(requests, i, mdl_help_request_t);
        mdl_json_t *of = mdl_json_add_object(list, NULL);

        link.request_id = request->id;
        mdl_json_add_string(of, "order_id",
                            request->order_name != NULL ? request->order_name
                                                        : request->storefront_order_id);
        mdl_present_date(of, "asked", request->asked_at);
        mdl_json_add_string(of, "help_url",
                            mdl_signed_url_help(task->service->secret,
                                                task->service->settings->public_url, &link, p));
    }
    return APR_SUCCESS;
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

static apr_status_t email_of_staff(mdl_db_t *db, mdl_message_source_t *source,
                                   const mdl_task_t *task, const mdl_staff_email_t *email,
                                   const mdl_shop_t *shop)
{
    mdl_email_add_shop(email->data, shop, task->service->settings->settings_url, task->pool);
    if (strcmp(email->template, MDL_STAFF_EMAIL_CONFIRM) == 0) {
        email_add_confirm(email->data, task, email->to, task->pool);
    }
    log_last(task, email);
    source->letter.template = email->template;
    source->letter.data = email->data;
    return email_add_help(db, email->data, task, task->pool);
}

/* A test of an email to customers comes from whom they would see. */
static void email_of_test(mdl_message_source_t *source, const mdl_task_t *task,
                          const mdl_staff_email_t *email, const mdl_shop_t *shop)
{
    const char *template = mdl_json_string(mdl_json_member(email->data, "template"));

    source->is_test = 1;
    source->letter.locale = mdl_json_string(mdl_json_member(email->data, "language"));
    mdl_email_sample(&source->letter, template, shop, task->service->secret,
                     task->service->settings, task->pool);
    if (mdl_email_sample_is_customers(template)) {
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
    } else if ((rv = email_of_staff(db, &source, task, &email, shop)) != APR_SUCCESS) {
        return rv;
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
