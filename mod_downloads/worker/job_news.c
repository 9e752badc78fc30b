/*
 * The job news_email: tells a customer of the new versions of files.
 */
#include <apr_strings.h>

#include "base/clock.h"
#include "core/download/signed_url.h"
#include "core/order/bounce.h"
#include "core/order/email_data.h"
#include "core/order/news_data.h"
#include "core/shop/rate_limit.h"
#include "core/shop/shop.h"
#include "worker/handler.h"
#include "worker/message.h"

#define NEWS_TURN "turn"

/*
 * These emails wait for turns of half DownloadsMailRate, and then leave only if emails of orders
 * leave room: else they wait for another turn.  As in job_mail.c, waiting is no attempt, and the
 * validator marks a job whose turn was reserved.
 */
static int news_has_to_wait(mdl_task_t *task)
{
    mdl_job_t *job = task->job;
    mdl_rate_limit_t *limit = task->service->rate_limit;
    const char *shop = apr_psprintf(task->pool, "%" APR_INT64_T_FMT, job->shop_id);
    apr_time_t now = mdl_clock_monotonic();
    apr_interval_time_t wait = 0;
    mdl_rate_state_t orders = {.allowed = 0};

    if (job->attempts > 1 || job->interruptions > 0) {
        return 0;
    }
    if (job->validator == NULL) {
        wait = mdl_rate_limit_reserve(limit, MDL_RATE_NEWS, shop, now);
    }
    if (wait == 0) {
        mdl_rate_limit_take(limit, MDL_RATE_MAIL, shop, 1, now, &orders);
        if (orders.allowed) {
            return 0;
        }
        wait = mdl_rate_limit_reserve(limit, MDL_RATE_NEWS, shop, now);
        wait = wait > orders.more_in ? wait : orders.more_in;
    }
    job->due_at = apr_time_now() + wait;
    atomic_store(&task->validator, NEWS_TURN);
    task->outcome = MDL_TASK_RELEASED;
    return 1;
}

/* The address that gets bounces. */
static const char *news_sender(const mdl_task_t *task, const mdl_news_email_t *email)
{
    const mdl_settings_t *settings = task->service->settings;

    return settings->mail_bounces == NULL
               ? settings->mail_from
               : mdl_bounce_address_of_news(
                     task->service->secret, settings->mail_from,
                     APR_ARRAY_IDX(email->files, 0, mdl_news_file_t).order_id, email->to,
                     task->pool);
}

static apr_status_t news_build(mdl_task_t *task, const mdl_shop_t *shop,
                               const mdl_news_email_t *email)
{
    const mdl_service_t *service = task->service;
    const mdl_settings_t *settings = service->settings;
    const mdl_job_t *job = task->job;
    apr_pool_t *p = task->pool;
    mdl_message_t *message = task->data = apr_pcalloc(p, sizeof *message);
    const mdl_signed_unsubscribe_t unsubscribe = {job->shop_id, email->address_mac};
    mdl_message_source_t source = {
        .letter = {.template = MDL_NEWS_TEMPLATE, .shop_id = job->shop_id},
        .mime = {
            .from_name = shop->sender_name != NULL ? shop->sender_name : shop->name,
            .reply_to = shop->reply_to != NULL ? shop->reply_to : shop->email,
            .from = settings->mail_from,
            .to = email->to,
            .unsubscribe_url = mdl_signed_url_unsubscribe(service->secret, settings->public_url,
                                                          &unsubscribe, p),
            .message_id = apr_pstrcat(p, job->id, "@", mdl_settings_public_host(settings, p), NULL),
            .date = job->created_at}};

    source.letter.data = mdl_news_data(email, source.mime.unsubscribe_url, service->secret,
                                       settings->public_url, p);
    mdl_email_choose_language(&source.letter, APR_ARRAY_IDX(email->files, 0, mdl_news_file_t).order,
                              p);
    message->sender = news_sender(task, email);
    mdl_template_cache_refresh(task->templates);
    return mdl_message_build(task, message, &source, p);
}

/* Whoever has unsubscribed since, or whose orders give nothing any more, gets none. */
static apr_status_t news_prepare(mdl_db_t *db, mdl_task_t *task)
{
    mdl_news_email_t email = {.secret = task->service->secret,
                              .default_download_limit = task->service->settings->download_limit};
    mdl_shop_t *shop;
    apr_status_t rv = mdl_news_read(db, task->job, &email, task->pool);

    if (rv == APR_SUCCESS && email.to == NULL) {
        task->outcome = MDL_TASK_SUCCEEDED;
        return APR_EOF;
    }
    if (rv == APR_SUCCESS && news_has_to_wait(task)) {
        return APR_EOF;
    }
    if (rv != APR_SUCCESS ||
        (rv = mdl_shop_find(db, task->job->shop_id, &shop, task->pool)) != APR_SUCCESS) {
        return rv;
    }
    return news_build(task, shop, &email);
}

static void news_start(mdl_task_t *task)
{
    mdl_message_send(task, task->data);
}

/* One that failed can be retried, until the job is forgotten. */
static apr_status_t news_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    return task->outcome == MDL_TASK_SUCCEEDED ? mdl_news_over(db, task->job, p) : APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_news = {
    .prepare = news_prepare,
    .start = news_start,
    .settle = news_settle,
};
