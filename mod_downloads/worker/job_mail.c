/*
 * The job email (contract, section 10): renders an order's delivery email, or the one that refuses
 * a request for help, and sends it.
 */
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/order/bounce.h"
#include "core/order/email_data.h"
#include "core/order/late.h"
#include "worker/handler.h"
#include "worker/message.h"

#define MAIL_TURN "turn"

typedef struct {
    mdl_email_t email;
    const mdl_order_t *order;
    int is_partial; /* something is missing in it */
    mdl_message_t message;
} mail_t;

/* The address that gets bounces. */
static const char *envelope_sender(const mdl_task_t *task)
{
    const mdl_settings_t *settings = task->service->settings;
    const mail_t *mail = task->data;

    return settings->mail_bounces == NULL
               ? settings->mail_from
               : mdl_bounce_address(task->service->secret, settings->mail_from, mail->email.id,
                                    task->pool);
}

/* p holds what is needed only to build the message. */
static apr_status_t mail_build(mdl_task_t *task, const mdl_order_t *order, apr_pool_t *p)
{
    mail_t *mail = task->data;
    const mdl_service_t *service = task->service;
    mdl_json_t *data = mdl_email_data(order, service->secret, service->settings->public_url, p);
    mdl_message_source_t source = {
        .letter = {.template = "email", .shop_id = order->shop_id, .data = data},
        .mime = {.from_name = mail->email.from_name,
                 .from = service->settings->mail_from,
                 .reply_to = mail->email.reply_to,
                 .to = mail->email.to,
                 .message_id = mail->email.message_id,
                 .date = task->job->created_at}};

    mdl_email_choose_language(&source.letter, order, p);
    if (mail->email.help_id != 0) {
        source.letter.template = "help";
        mdl_json_add_string(data, "answer", mail->email.help_answer);
    } else {
        mdl_json_add_bool(data, "late", mail->email.is_late);
        mail->is_partial = mdl_late_is_partial(order, apr_time_now());
    }
    mail->message.sender = envelope_sender(task);
    return mdl_message_build(task, &mail->message, &source, p);
}

/* Why an order's customer gets no downloads, or NULL. */
static const char *why_closed(const mdl_order_t *order)
{
    switch (order->state.access) {
    case MDL_ORDER_ACTIVE:
        return mdl_order_has_open(order, apr_time_now())
                   ? NULL
                   : "Access to everything in the order was revoked or expired before the email "
                     "was sent.";
    case MDL_ORDER_REJECTED:
        return "The order was rejected before the email was sent.";
    default:
        return "Access to the order was revoked before the email was sent.";
    }
}

/* Reads the orders of emails, each once, into a hash by id. */
static apr_status_t orders_read(mdl_db_t *db, const apr_array_header_t *emails,
                                const mdl_task_t *task, apr_hash_t *orders, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, emails->nelts, sizeof(apr_int64_t));
    mdl_order_find_all_t find = {.ids = ids,
                                 .default_download_limit = task->service->settings->download_limit};
    apr_status_t rv;

    for (int i = 0; i < emails->nelts; i++) {
        const mdl_email_t *email = &APR_ARRAY_IDX(emails, i, mdl_email_t);

        if (apr_hash_get(orders, &email->order_id, sizeof email->order_id) == NULL) {
            apr_hash_set(orders, &email->order_id, sizeof email->order_id, email);
            APR_ARRAY_PUSH(ids, apr_int64_t) = email->order_id;
        }
    }
    apr_hash_clear(orders);
    if ((rv = mdl_order_find_all(db, p, &find)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < find.orders->nelts; i++) {
        const mdl_order_t *order = APR_ARRAY_IDX(find.orders, i, mdl_order_t *);

        apr_hash_set(orders, &order->id, sizeof order->id, order);
    }
    return APR_SUCCESS;
}

static apr_status_t mail_read(mdl_db_t *db, apr_pool_t *p, const apr_array_header_t *tasks)
{
    apr_array_header_t *ids = apr_array_make(p, tasks->nelts, sizeof(apr_int64_t));
    apr_hash_t *by_email = apr_hash_make(p), *orders = apr_hash_make(p);
    mdl_task_t *first = APR_ARRAY_IDX(tasks, 0, mdl_task_t *);
    apr_array_header_t *emails;
    apr_status_t rv;

    mdl_template_cache_refresh(first->templates);
    for (int i = 0; i < tasks->nelts; i++) {
        mdl_task_t *task = APR_ARRAY_IDX(tasks, i, mdl_task_t *);

        task->data = apr_pcalloc(task->pool, sizeof(mail_t));
        APR_ARRAY_PUSH(ids, apr_int64_t) = task->job->email_id;
        apr_hash_set(by_email, &task->job->email_id, sizeof task->job->email_id, task->data);
    }
    if ((rv = mdl_email_find_all(db, ids, &emails, p)) != APR_SUCCESS ||
        (rv = orders_read(db, emails, first, orders, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < emails->nelts; i++) {
        const mdl_email_t *email = &APR_ARRAY_IDX(emails, i, mdl_email_t);
        mail_t *mail = apr_hash_get(by_email, &email->id, sizeof email->id);

        mail->email = *email;
        mail->order = apr_hash_get(orders, &email->order_id, sizeof email->order_id);
    }
    return APR_SUCCESS;
}

/*
 * A shop's emails beyond DownloadsMailRate wait for their turn, which is reserved at the first
 * claim: the job is due then, and the attempt does not count.  The job's validator, otherwise
 * unused for emails, marks the reservation.
 */
static int mail_has_to_wait(mdl_task_t *task)
{
    mdl_job_t *job = task->job;
    mdl_rate_limit_t *limit = task->service->rate_limit;
    const char *shop = apr_psprintf(task->pool, "%" APR_INT64_T_FMT, job->shop_id);
    apr_time_t now = mdl_clock_monotonic();
    apr_interval_time_t wait;
    mdl_rate_state_t line;

    if (job->attempts > 1 || job->interruptions > 0 || job->validator != NULL ||
        (wait = mdl_rate_limit_reserve(limit, MDL_RATE_MAIL, shop, now)) == 0) {
        return 0;
    }
    job->due_at = apr_time_now() + wait;
    job->error_message = apr_psprintf(task->pool,
                                      "The shop has sent as many emails as it may within an hour; "
                                      "this one leaves at %s.",
                                      mdl_clock_rfc3339(job->due_at, task->pool));
    atomic_store(&task->validator, MAIL_TURN);
    task->outcome = MDL_TASK_RELEASED;
    mdl_rate_limit_take(limit, MDL_RATE_MAIL_LINE, shop, 1, now, &line);
    if (line.allowed) {
        mdl_log(MDL_LOG_WARNING, 0,
                "MDL0346: shop %s has sent as many emails as DownloadsMailRate allows within an "
                "hour; further ones wait",
                shop);
    }
    return 1;
}

static apr_status_t mail_prepare_order(mdl_task_t *task, const mdl_order_t *order, apr_pool_t *p)
{
    const mail_t *mail = task->data;
    const char *why;

    if (mail->email.help_id != 0) { /* whatever the order gives */
        return mail_has_to_wait(task) ? APR_EOF : mail_build(task, order, p);
    }
    if (order->state.access == MDL_ORDER_HELD) {
        task->job->due_at = apr_time_now();
        task->outcome = MDL_TASK_RELEASED; /* settle holds the email again, unless the order is
                                              approved by then */
        return APR_EOF;
    }
    if ((why = why_closed(order)) != NULL) {
        return mdl_message_unsent(task, MDL_TASK_FAILED, "access", why);
    }
    if (mail_has_to_wait(task)) {
        return APR_EOF;
    }
    return mail_build(task, order, p);
}

/* Reads the order separately if it has too many files to be read with the others. */
static apr_status_t mail_prepare(mdl_db_t *db, mdl_task_t *task)
{
    mail_t *mail = task->data;
    mdl_order_find_t find = {.id = mail->email.order_id,
                             .default_download_limit = task->service->settings->download_limit,
                             .with_notes = 1};
    const mdl_order_t *order = mail->order;
    apr_pool_t *scratch;
    apr_status_t rv = find.id != 0 ? APR_SUCCESS : APR_ENOENT;

    mail->order = NULL; /* valid only during this turn */
    mail->email.to = apr_pstrdup(task->pool, mail->email.to);
    apr_pool_create(&scratch, task->pool);
    apr_pool_tag(scratch, "mdl_mail_prepare");
    if (order == NULL && rv == APR_SUCCESS &&
        (rv = mdl_order_find(db, scratch, &find)) == APR_SUCCESS) {
        order = find.order;
    }
    if (rv == APR_SUCCESS) {
        rv = mail_prepare_order(task, order, scratch);
    }
    apr_pool_destroy(scratch);
    return rv;
}

static void mail_start(mdl_task_t *task)
{
    mail_t *mail = task->data;

    mdl_message_send(task, &mail->message);
}

static apr_status_t mail_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    const mdl_job_t *job = task->job;
    const mail_t *mail = task->data;
    mdl_email_status_t status = task->outcome == MDL_TASK_SUCCEEDED ? MDL_EMAIL_SENT
                                : task->outcome == MDL_TASK_FAILED  ? MDL_EMAIL_FAILED
                                                                    : MDL_EMAIL_QUEUED;
    apr_status_t rv = APR_SUCCESS;

    if (task->outcome != MDL_TASK_RELEASED) {
        const char *to = mail != NULL && status != MDL_EMAIL_QUEUED ? mail->email.to : NULL;

        rv = mdl_email_result(
            db, job->email_id, status, job->attempts, to,
            status == MDL_EMAIL_SENT ? mail->message.response : job->error_message, p);
    } else if (job->error_message != NULL && job->attempts == 1) {
        rv = mdl_email_result(db, job->email_id, status, 0, NULL, job->error_message, p);
    }
    if (rv == APR_SUCCESS && status == MDL_EMAIL_SENT && mail->is_partial) {
        rv = mdl_late_owe(db, job->shop_id, &mail->email, p);
    }
    if (rv == APR_SUCCESS && status == MDL_EMAIL_QUEUED) {
        rv = mdl_email_hold_again(db, job->email_id, job->id, p);
    }
    return rv;
}

const mdl_job_handler_t mdl_handler_mail = {
    .read = mail_read,
    .prepare = mail_prepare,
    .start = mail_start,
    .settle = mail_settle,
};
