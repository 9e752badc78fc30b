/*
 * The job storefront_lookup: looks up an order's customer in the shop's storefront and, if the
 * fraud check needs it, the order's risk.
 */
#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/post.h"
#include "base/log.h"
#include "core/order/lookup.h"
#include "worker/handler.h"
#include "worker/runner.h"

typedef struct {
    mdl_lookup_t subject;
    const char *token;
    mdl_http_post_t *post;
    mdl_platform_found_t found;
} lookup_t;

/* Ends an attempt without a request; returns prepare's result. */
static apr_status_t lookup_end_early(mdl_task_t *task, mdl_outcome_t outcome, const char *code,
                                     const char *message)
{
    task->job->error_code = code;
    task->job->error_message = message;
    task->outcome = outcome;
    return APR_EOF;
}

static int lookup_is_needed(const mdl_lookup_t *subject)
{
    return subject->for_risk || (subject->for_email && subject->email == NULL);
}

static apr_status_t lookup_prepare(mdl_db_t *db, mdl_task_t *task)
{
    lookup_t *lookup = apr_pcalloc(task->pool, sizeof *lookup);
    mdl_lookup_t *subject = &lookup->subject;
    apr_status_t rv;

    task->data = lookup;
    if ((rv = mdl_lookup_find(db, task->job->order_id, subject, task->pool)) != APR_SUCCESS) {
        return rv;
    }
    if (!lookup_is_needed(subject)) {
        return lookup_end_early(task, MDL_TASK_SUCCEEDED, NULL, NULL);
    }
    if (subject->url == NULL) {
        return lookup_end_early(task, MDL_TASK_FAILED, "storefront_not_connected",
                                "The shop has no connection to its storefront any more.");
    }
    if (mdl_storefront_token(task->service->secret, subject->shop_id, subject->url, subject->sealed,
                             &lookup->token, task->pool) != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0360: the storefront token of shop %" APR_INT64_T_FMT
                " can't be opened: it was sealed with another secret than that of "
                "DownloadsSecretFile, or changed; set it anew with downloadsctl shop set",
                subject->shop_id);
        return lookup_end_early(task, MDL_TASK_FAILED, "storefront_token_unreadable",
                                "The storefront's access token can't be opened with the server's "
                                "secret: the operator has to set it anew.");
    }
    return APR_SUCCESS;
}

static mdl_platform_question_t lookup_question(const lookup_t *lookup)
{
    const mdl_lookup_t *subject = &lookup->subject;

    return (mdl_platform_question_t){.url = subject->url,
                                     .token = lookup->token,
                                     .customer_id = subject->storefront_customer_id,
                                     .order_id = subject->storefront_order_id,
                                     .with_order = subject->for_risk};
}

static void lookup_on_done(void *baton, const mdl_http_response_t *http)
{
    static const mdl_outcome_t outcomes[] = {
        [MDL_PLATFORM_ANSWERED] = MDL_TASK_SUCCEEDED,
        [MDL_PLATFORM_LATER] = MDL_TASK_RETRY,
        [MDL_PLATFORM_REFUSED] = MDL_TASK_FAILED,
    };
    mdl_task_t *task = baton;
    lookup_t *lookup = task->data;
    const mdl_platform_question_t question = lookup_question(lookup);
    mdl_platform_answer_t answer;

    lookup->post = NULL;
    mdl_shopify.read(&answer, http, &question, task->pool);
    lookup->found = answer.found;
    task->retry_after = answer.retry_after;
    task->job->error_code = answer.code;
    task->job->error_message = answer.message;
    if (answer.outcome != MDL_PLATFORM_ANSWERED) {
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0361: look-up %s, attempt %d: %s (status %d, %s)",
                mdl_job_name(task->job, task->pool), task->job->attempts, answer.code, http->status,
                http->detail);
    }
    mdl_runner_done(task, outcomes[answer.outcome]);
}

static void lookup_start(mdl_task_t *task)
{
    lookup_t *lookup = task->data;
    const mdl_lookup_t *subject = &lookup->subject;
    const mdl_http_policy_t *policy = mdl_storefront_policy(task->service->settings, subject->url,
                                                            task->pool);
    const mdl_platform_question_t question = lookup_question(lookup);
    mdl_http_post_request_t request;

    mdl_shopify.ask(&request, &question, task->pool);
    mdl_task_begun(task, MDL_BEGUN_WAITS);
    lookup->post = mdl_http_post(mdl_runner_http(task->runner), policy, &request, lookup_on_done,
                                 task);
}

static void lookup_stop(mdl_task_t *task)
{
    mdl_http_post_cancel(((lookup_t *)task->data)->post);
}

static apr_status_t lookup_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    static const lookup_t unprepared;
    const lookup_t *lookup = task->data != NULL ? task->data : &unprepared;
    const mdl_lookup_result_t result = {
        .rules = task->service->fraud,
        .found = &lookup->found,
        .failure = task->outcome == MDL_TASK_FAILED ? task->job->error_message : NULL,
        .asked_risk = lookup->subject.for_risk};

    return task->outcome == MDL_TASK_SUCCEEDED || task->outcome == MDL_TASK_FAILED
               ? mdl_lookup_settle(db, task->job->order_id, &result, p)
               : APR_SUCCESS;
}

const mdl_job_handler_t mdl_handler_lookup = {
    .prepare = lookup_prepare,
    .start = lookup_start,
    .stop = lookup_stop,
    .alone = 1, /* locks a customer, then an order, then its license key tags */
    .settle = lookup_settle,
};
