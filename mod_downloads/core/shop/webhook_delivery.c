#include "core/shop/webhook_delivery.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/text/present.h"
#include "base/text/utf8.h"
#include "core/ids.h"
#include "core/shop/staff_email.h"

#define EXCERPT       1024 /* bytes of a response */
#define GONE          410
#define URL_SHOWN     120 /* characters in an email */
#define FAILING_LIMIT apr_time_from_sec(5 * 86400)

const char *const mdl_delivery_status_names[] = {[MDL_DELIVERY_PENDING] = "pending",
                                                 [MDL_DELIVERY_SUCCEEDED] = "succeeded",
                                                 [MDL_DELIVERY_FAILED] = "failed",
                                                 NULL};

/* Seconds to the next attempt: three days in all. */
static const int delays[] = {5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 73495};
#define RETRIES ((int)(sizeof delays / sizeof *delays))

/* --- queueing --- */

static apr_status_t webhook_wake_jobs(mdl_db_t *db, const apr_array_header_t *endpoint_ids,
                                      apr_pool_t *p)
{
    apr_time_t now = apr_time_now();

    mdl_db_note_due(db, now);
    return mdl_db_exec(db, NULL, p, MDL_Q(WEBHOOK_JOBS_WAKE, .due_at = now, .ids = endpoint_ids));
}

apr_status_t mdl_webhook_queue(mdl_db_t *db, const apr_array_header_t *event_ids, int *queued,
                               apr_pool_t *p)
{
    apr_array_header_t *endpoint_ids = apr_array_make(p, 4, sizeof(apr_int64_t));
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(WEBHOOK_DELIVERIES_INSERT, .now = apr_time_now(), .ids = event_ids));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t id = mdl_rows_int(rows, 0);

        if (!mdl_ids_has(endpoint_ids, id)) {
            APR_ARRAY_PUSH(endpoint_ids, apr_int64_t) = id;
        }
    }
    *queued = endpoint_ids->nelts > 0;
    return rv == APR_SUCCESS && *queued ? webhook_wake_jobs(db, endpoint_ids, p) : rv;
}

/* --- reading --- */

static mdl_webhook_delivery_t *delivery_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_webhook_delivery_t *delivery = apr_pcalloc(p, sizeof *delivery);

    MDL_READ(row, delivery, delivery, id, event_id, type, attempts, due_at, response_status,
             response_body, error, created_at, updated_at);
    delivery->status = MDL_ENUM(row, delivery, status, mdl_delivery_status_names);
    return delivery;
}

apr_status_t mdl_webhook_delivery_page(mdl_db_t *db, apr_pool_t *p,
                                       mdl_webhook_delivery_page_t *list)
{
    mdl_list_page_t *page = &list->page;
    mdl_rows_t *rows;
    apr_status_t rv;

    page->found = apr_array_make(p, page->limit, sizeof(mdl_webhook_delivery_t *));
    if ((rv = mdl_webhook_find(db, p, &list->ref)) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &rows, p,
                            MDL_Q(WEBHOOK_DELIVERY_PAGE, .endpoint_id = list->ref.id,
                                  .before = page->before, .limit = page->limit))) != APR_SUCCESS) {
        return rv;
    }
    while (mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(page->found, mdl_webhook_delivery_t *) = delivery_of_row(rows, p);
    }
    return rv;
}

apr_status_t mdl_webhook_resend(mdl_db_t *db, apr_pool_t *p, mdl_webhook_resend_t *resend)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_webhook_find(db, p, &resend->ref);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(WEBHOOK_DELIVERY_RESEND, .now = apr_time_now(), .id = resend->id,
                           .endpoint_id = resend->ref.id));
    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(
            db, &row, p,
            MDL_Q(WEBHOOK_DELIVERY_BY_ID, .id = resend->id, .endpoint_id = resend->ref.id));
    }
    if (rv == APR_ENOENT) {
        return mdl_problem_set(resend->ref.problem, 404, "webhook_delivery_not_found",
                               "There is no such delivery.");
    }
    if (rv != APR_SUCCESS || (rv = mdl_webhook_check_active(&resend->ref)) != APR_SUCCESS) {
        return rv;
    }
    resend->delivery = delivery_of_row(row, p);
    return webhook_wake_jobs(db, mdl_ids_of(resend->ref.id, p), p);
}

/* --- the endpoint's job --- */

static const char *message_body(const mdl_event_t *event, apr_pool_t *p)
{
    mdl_json_t *body = mdl_json_object(p);

    mdl_event_write(body, event, p);
    return mdl_json_text(body, NULL, p);
}

static apr_status_t round_read_messages(mdl_db_t *db, mdl_webhook_round_t *round, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(WEBHOOK_DELIVERIES_DUE, .endpoint_id = round->endpoint_id,
                                          .now = apr_time_now(), .limit = MDL_WEBHOOK_ROUND));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_webhook_message_t *message = apr_array_push(round->messages);
        mdl_event_t event;

        mdl_event_read(&event, rows, mdl_c_webhook_deliveries_due_id);
        message->id = MDL_INT(rows, webhook_deliveries_due, delivery_id);
        message->attempts = (int)MDL_INT(rows, webhook_deliveries_due, attempts);
        message->event_id = mdl_event_id_text(event.id, p);
        message->body = message_body(&event, p);
    }
    return rv;
}

static const char *round_secret(const mdl_secret_t *secret, const mdl_webhook_round_t *round,
                                const char *sealed, apr_pool_t *p)
{
    const char *bytes = NULL;

    return sealed != NULL && mdl_webhook_secret_open(secret, round->endpoint_id, sealed, &bytes,
                                                     p) == APR_SUCCESS
               ? bytes
               : NULL;
}

apr_status_t mdl_webhook_round(mdl_db_t *db, const mdl_secret_t *secret, const char *job_id,
                               mdl_webhook_round_t *round, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(WEBHOOK_ENDPOINT_OF_JOB, job_id));

    *round = (mdl_webhook_round_t){
        .messages = apr_array_make(p, MDL_WEBHOOK_ROUND, sizeof(mdl_webhook_message_t))};
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    round->endpoint_id = MDL_INT(row, webhook_endpoint_of_job, id);
    MDL_READ(row, webhook_endpoint_of_job, round, shop_id, url);
    round->secrets[0] = round_secret(secret, round, MDL_TEXT(row, webhook_endpoint_of_job, secret),
                                     p);
    if (MDL_INT(row, webhook_endpoint_of_job, old_until) > apr_time_now()) {
        round->secrets[1] = round_secret(secret, round,
                                         MDL_TEXT(row, webhook_endpoint_of_job, old_secret), p);
    }
    return MDL_INT(row, webhook_endpoint_of_job, is_active) != 0 ? round_read_messages(db, round, p)
                                                                 : APR_SUCCESS;
}

apr_array_header_t *mdl_webhook_headers(const mdl_webhook_round_t *round,
                                        const mdl_webhook_message_t *message, apr_pool_t *p)
{
    apr_array_header_t *lines = apr_array_make(p, 3, sizeof(const char *));
    const char *timestamp = apr_psprintf(p, "%" APR_INT64_T_FMT, apr_time_sec(apr_time_now()));
    const char *content = apr_pstrcat(p, message->event_id, ".", timestamp, ".", message->body,
                                      NULL);
    const char *signatures = "";

    for (int i = 0; i < 2; i++) {
        unsigned char mac[MDL_SHA256_LENGTH];

        if (round->secrets[i] != NULL) {
            mdl_hmac_sha256(round->secrets[i], MDL_WEBHOOK_SECRET_SIZE, content, strlen(content),
                            mac);
            signatures = apr_pstrcat(p, signatures, " v1,", mdl_base64(mac, sizeof mac, p), NULL);
        }
    }
    APR_ARRAY_PUSH(lines, const char *) = apr_pstrcat(p, "webhook-id: ", message->event_id, NULL);
    APR_ARRAY_PUSH(lines, const char *) = apr_pstrcat(p, "webhook-timestamp: ", timestamp, NULL);
    APR_ARRAY_PUSH(lines, const char *) = apr_pstrcat(p, "webhook-signature:", signatures, NULL);
    return lines;
}

/* Cuts between characters; replaces bytes that are not text. */
const char *mdl_webhook_excerpt(const char *body, apr_size_t length, apr_pool_t *p)
{
    char *text;

    if (length > EXCERPT) {
        length = EXCERPT;
        while (length > EXCERPT - 4 && ((unsigned char)body[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    text = apr_pstrmemdup(p, body, length);
    for (apr_size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') {
            text[i] = ' ';
        }
    }
    for (apr_size_t i = 0; !mdl_utf8_valid(text) && i < length; i++) {
        if ((unsigned char)text[i] >= 0x80) {
            text[i] = '?';
        }
    }
    return *text != '\0' ? text : NULL;
}

static apr_status_t result_write(mdl_db_t *db, const mdl_webhook_result_t *result, apr_pool_t *p)
{
    int attempts = result->message->attempts + 1;
    apr_time_t now = apr_time_now();
    mdl_delivery_status_t status = result->succeeded     ? MDL_DELIVERY_SUCCEEDED
                                   : attempts <= RETRIES ? MDL_DELIVERY_PENDING
                                                         : MDL_DELIVERY_FAILED;
    apr_time_t due_at = status == MDL_DELIVERY_PENDING
                            ? now + apr_time_from_sec(delays[attempts - 1])
                            : 0;

    return mdl_db_exec(
        db, NULL, p,
        MDL_Q(WEBHOOK_DELIVERY_RESULT, .status = mdl_delivery_status_names[status],
              .attempts = attempts, .due_at = due_at, .response_status = result->response_status,
              .response_body = result->response_body, .error = result->error, .now = now,
              .id = result->message->id, .old_attempts = result->message->attempts));
}

static apr_status_t endpoint_notify(mdl_db_t *db, const mdl_webhook_round_t *round, apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {.shop_id = round->shop_id, .type = MDL_EVENT_WEBHOOK_DISABLED};

    mdl_json_add_int(data, "webhook_endpoint_id", round->endpoint_id);
    event.data = mdl_json_text(data, NULL, p);
    return mdl_event_add(db, &event, p);
}

static apr_status_t endpoint_email_staff(mdl_db_t *db, const mdl_webhook_round_t *round,
                                         const mdl_webhook_result_t *last, apr_time_t failing_since,
                                         apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);

    mdl_json_add_int(data, "webhook_endpoint_id", round->endpoint_id);
    mdl_json_add_string(data, "url", mdl_utf8_quoted(round->url, URL_SHOWN, p));
    mdl_present_date(data, "failing_since", failing_since);
    mdl_json_add_string(data, "error", last->error);
    return mdl_staff_email_queue(db, round->shop_id, NULL, "webhook_disabled", data, p);
}

/* 410 asks for no more messages (Standard Webhooks, "Deliverability and reliability"). */
static apr_status_t endpoint_disable(mdl_db_t *db, const mdl_webhook_round_t *round,
                                     const mdl_webhook_result_t *last, int *disabled, apr_pool_t *p)
{
    int gone = last->response_status == GONE;
    apr_time_t now = apr_time_now();
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(WEBHOOK_ENDPOINT_DISABLE, .now = now,
                                              .id = round->endpoint_id,
                                              .failing_since = gone ? now : now - FAILING_LIMIT));

    *disabled = rv == APR_SUCCESS;
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    rv = endpoint_notify(db, round, p);
    return rv == APR_SUCCESS ? endpoint_email_staff(db, round, last, mdl_rows_int(row, 0), p) : rv;
}

apr_status_t mdl_webhook_settle(mdl_db_t *db, const mdl_webhook_round_t *round,
                                const apr_array_header_t *results, int *disabled, apr_pool_t *p)
{
    int any = 0;
    apr_status_t rv = APR_SUCCESS;

    *disabled = 0;
    for (int i = 0; i < results->nelts && rv == APR_SUCCESS; i++) {
        const mdl_webhook_result_t *result = &APR_ARRAY_IDX(results, i, mdl_webhook_result_t);

        any |= result->succeeded;
        rv = result_write(db, result, p);
    }
    if (rv != APR_SUCCESS || results->nelts == 0) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(WEBHOOK_ENDPOINT_RESULT, .good = any, .now = apr_time_now(),
                           .id = round->endpoint_id));
    return rv == APR_SUCCESS && !any
               ? endpoint_disable(db, round,
                                  &APR_ARRAY_IDX(results, results->nelts - 1, mdl_webhook_result_t),
                                  disabled, p)
               : rv;
}

apr_status_t mdl_webhook_schedule(mdl_db_t *db, apr_int64_t endpoint_id, const char *job_id,
                                  apr_time_t *due_at, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(WEBHOOK_JOB_SCHEDULE, .endpoint_id = endpoint_id, .id = job_id));

    *due_at = rv == APR_SUCCESS ? mdl_rows_int(row, 0) : 0;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_webhook_set_back(mdl_db_t *db, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(WEBHOOK_DELIVERIES_SET_BACK, apr_time_now()));
}
