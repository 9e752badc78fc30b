/*
 * The job webhook: sends the due deliveries of one endpoint, several at a time, and waits for the
 * next.  It lives as long as the endpoint.
 */
#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/post.h"
#include "base/log.h"
#include "core/metrics.h"
#include "core/shop/webhook_delivery.h"
#include "worker/handler.h"
#include "worker/runner.h"

#define UNTIL_WOKEN apr_time_from_sec(3600)

typedef struct webhook_t webhook_t;

typedef struct {
    webhook_t *webhook;
    const mdl_webhook_message_t *message;
    mdl_http_post_t *post; /* NULL once ended */
} attempt_t;

struct webhook_t {
    mdl_task_t *task;
    mdl_webhook_round_t round;
    attempt_t attempts[MDL_WEBHOOK_ROUND];
    int running;
    apr_array_header_t *results; /* mdl_webhook_result_t */
};

static apr_status_t webhook_prepare(mdl_db_t *db, mdl_task_t *task)
{
    webhook_t *webhook = apr_pcalloc(task->pool, sizeof *webhook);
    apr_status_t rv = mdl_webhook_round(db, task->service->secret, task->job->id, &webhook->round,
                                        task->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    webhook->task = task;
    webhook->results = apr_array_make(task->pool, MDL_WEBHOOK_ROUND, sizeof(mdl_webhook_result_t));
    task->data = webhook;
    if (webhook->round.messages->nelts == 0) {
        task->outcome = MDL_TASK_RELEASED;
        return APR_EOF;
    }
    return APR_SUCCESS;
}

/* --- an attempt --- */

/* The error for the shop: without an address, which it must not learn. */
static const char *attempt_error(const mdl_http_response_t *http, apr_pool_t *p)
{
    if (http->status >= 300 && http->status < 400) {
        return "The answer was a redirect, which is not followed.";
    }
    switch (http->result) {
    case MDL_HTTP_HOST_NOT_ALLOWED:
    case MDL_HTTP_URL_INVALID:
        return "The URL is not one that webhooks may be sent to.";
    case MDL_HTTP_ADDRESS_FORBIDDEN:
        return "The host's address is not one that webhooks may be sent to.";
    case MDL_HTTP_OK:
    case MDL_HTTP_TOO_LARGE:
        return apr_psprintf(p, "The answer had the status %d.", http->status);
    default:
        return apr_pstrdup(p, http->reason);
    }
}

/* A response that is too large counts as well: its body is not used. */
static int attempt_succeeded(const mdl_http_response_t *http)
{
    return http->status >= 200 && http->status < 300 &&
           (http->result == MDL_HTTP_OK || http->result == MDL_HTTP_TOO_LARGE);
}

static void attempt_end(attempt_t *attempt, const mdl_webhook_result_t *result)
{
    webhook_t *webhook = attempt->webhook;

    attempt->post = NULL;
    APR_ARRAY_PUSH(webhook->results, mdl_webhook_result_t) = *result;
    if (--webhook->running == 0) {
        mdl_runner_done(webhook->task, MDL_TASK_RELEASED);
    }
}

static void attempt_on_done(void *baton, const mdl_http_response_t *http)
{
    attempt_t *attempt = baton;
    const webhook_t *webhook = attempt->webhook;
    apr_pool_t *p = webhook->task->pool;
    mdl_webhook_result_t result = {
        .message = attempt->message,
        .succeeded = attempt_succeeded(http),
        .response_status = http->status,
        .response_body = mdl_webhook_excerpt(http->body, http->length, p)};

    if (!result.succeeded) {
        result.error = attempt_error(http, p);
        mdl_log(MDL_LOG_INFO, 0,
                "MDL0371: webhook endpoint %" APR_INT64_T_FMT ", delivery %" APR_INT64_T_FMT
                ", attempt %d: status %d, %s",
                webhook->round.endpoint_id, attempt->message->id, attempt->message->attempts + 1,
                http->status, http->detail);
    }
    attempt_end(attempt, &result);
}

static void attempt_begin(attempt_t *attempt, const mdl_http_policy_t *policy)
{
    const webhook_t *webhook = attempt->webhook;
    const mdl_task_t *task = webhook->task;
    mdl_http_post_request_t request = {
        .url = webhook->round.url,
        .body = attempt->message->body,
        .headers = mdl_webhook_headers(&webhook->round, attempt->message, task->pool)};

    attempt->post = mdl_http_post(mdl_runner_http(task->runner), policy, &request, attempt_on_done,
                                  attempt);
}

/* --- a round --- */

static void webhook_refuse_all(webhook_t *webhook)
{
    mdl_log(MDL_LOG_ERR, 0,
            "MDL0370: the secret of webhook endpoint %" APR_INT64_T_FMT " of shop %" APR_INT64_T_FMT
            " can't be opened: it was sealed with another secret than those of "
            "DownloadsSecretFile; the shop has to rotate it",
            webhook->round.endpoint_id, webhook->round.shop_id);
    for (int i = 0; i < webhook->round.messages->nelts; i++) {
        mdl_webhook_result_t result = {
            .message = webhook->attempts[i].message,
            .error = "The endpoint's secret can't be opened: rotate it."};

        attempt_end(&webhook->attempts[i], &result);
    }
}

static void webhook_start(mdl_task_t *task)
{
    webhook_t *webhook = task->data;
    const mdl_http_policy_t *policy = mdl_webhook_policy(task->service->settings,
                                                         webhook->round.url, task->pool);
    int count = webhook->running = webhook->round.messages->nelts;

    for (int i = 0; i < count; i++) {
        webhook->attempts[i].webhook = webhook;
        webhook->attempts[i].message = &APR_ARRAY_IDX(webhook->round.messages, i,
                                                      mdl_webhook_message_t);
    }
    if (webhook->round.secrets[0] == NULL) {
        webhook_refuse_all(webhook);
        return;
    }
    mdl_task_begun(task, MDL_BEGUN_WAITS);
    for (int i = 0; i < count; i++) {
        attempt_begin(&webhook->attempts[i], policy);
    }
}

static void webhook_stop(mdl_task_t *task)
{
    webhook_t *webhook = task->data;

    for (int i = 0; i < webhook->round.messages->nelts; i++) {
        if (webhook->attempts[i].post != NULL) {
            mdl_http_post_cancel(webhook->attempts[i].post);
        }
    }
}

/* The job is queued again.  If it was not prepared, it keeps its due time. */
static apr_status_t webhook_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    const webhook_t *webhook = task->data;
    apr_time_t due_at;
    int disabled;
    apr_status_t rv;

    if (webhook == NULL || task->outcome != MDL_TASK_RELEASED) {
        return APR_SUCCESS;
    }
    rv = mdl_webhook_settle(db, &webhook->round, webhook->results, &disabled, p);
    for (int i = 0; i < webhook->results->nelts; i++) {
        int succeeded = APR_ARRAY_IDX(webhook->results, i, mdl_webhook_result_t).succeeded;

        mdl_db_count(db, &mdl_metrics->webhook_attempts[succeeded], 1);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_webhook_schedule(db, webhook->round.endpoint_id, task->job->id, &due_at, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    task->job->due_at = due_at != 0 ? due_at : apr_time_now() + UNTIL_WOKEN;
    if (disabled) {
        mdl_log(MDL_LOG_WARNING, 0,
                "MDL0372: webhook endpoint %" APR_INT64_T_FMT " of shop %" APR_INT64_T_FMT
                " has failed for five days, or is gone (410), and is switched off",
                webhook->round.endpoint_id, webhook->round.shop_id);
    }
    return APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_webhook = {
    .prepare = webhook_prepare,
    .start = webhook_start,
    .stop = webhook_stop,
    .alone = 1, /* locks its endpoint after the job */
    .settle = webhook_settle,
};
