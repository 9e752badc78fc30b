#include "core/order/email.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/ulid.h"
#include "core/download/entitlement.h"
#include "core/ids.h"
#include "core/order/timeline.h"
#include "core/shop/event.h"

const char *const mdl_email_status_names[] = {[MDL_EMAIL_NOT_REQUESTED] = "not_requested",
                                              [MDL_EMAIL_QUEUED] = "queued",
                                              [MDL_EMAIL_HELD] = "held",
                                              [MDL_EMAIL_SENT] = "sent",
                                              [MDL_EMAIL_FAILED] = "failed",
                                              [MDL_EMAIL_NO_RECIPIENT] = "no_recipient",
                                              [MDL_EMAIL_BOUNCED] = "bounced",
                                              NULL};

void mdl_email_state_of_row(mdl_email_state_t *state, const mdl_rows_t *row, int first)
{
    state->status = mdl_rows_enum(row, first + mdl_c_email_status, mdl_email_status_names);
    if (mdl_rows_int(row, first + mdl_c_email_held) != 0) {
        state->status = MDL_EMAIL_HELD;
    } else if (state->status == MDL_EMAIL_SENT &&
               !mdl_rows_null(row, first + mdl_c_email_bounced_at)) {
        state->status = MDL_EMAIL_BOUNCED;
    }
    state->to = mdl_rows_text(row, first + mdl_c_email_recipient);
    state->attempts = (int)mdl_rows_int(row, first + mdl_c_email_attempts);
    state->last_error = mdl_rows_text(row, first + mdl_c_email_last_error);
    state->sent_at = mdl_rows_int(row, first + mdl_c_email_sent_at);
    state->bounced_at = mdl_rows_int(row, first + mdl_c_email_bounced_at);
}

apr_status_t mdl_email_state(mdl_db_t *db, apr_int64_t order_id, mdl_email_state_t *state,
                             apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(EMAIL_LATEST, order_id));

    *state = (mdl_email_state_t){.status = MDL_EMAIL_NOT_REQUESTED};
    if (rv == APR_SUCCESS) {
        mdl_email_state_of_row(state, row, 0);
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t email_insert_job_at(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t email_id,
                                        apr_time_t due_at, apr_pool_t *p)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_EMAIL,
                     .lane = MDL_LANE_MAIL,
                     .shop_id = shop_id,
                     .email_id = email_id,
                     .due_at = due_at,
                     .max_attempts = MDL_JOB_MAIL_ATTEMPTS};

    return mdl_job_insert(db, &job, p);
}

/* The shop's delay counts from the request for the email. */
static apr_status_t email_insert_job(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t email_id,
                                     apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(EMAIL_DELAY, email_id));

    return rv == APR_SUCCESS
               ? email_insert_job_at(
                     db, shop_id, email_id,
                     MDL_INT(row, email_delay, created_at) +
                         apr_time_from_sec(60 * MDL_INT(row, email_delay, mail_delay)),
                     p)
               : rv;
}

/* An email that has no address yet is sent once the storefront has given one. */
static int is_to_be_sent(const mdl_email_new_t *email)
{
    return email->to != NULL || email->awaited;
}

mdl_email_state_t mdl_email_state_of_new(const mdl_email_new_t *email)
{
    mdl_email_state_t state = {.status = MDL_EMAIL_NO_RECIPIENT, .to = email->to};

    if (is_to_be_sent(email)) {
        state.status = email->held ? MDL_EMAIL_HELD : MDL_EMAIL_QUEUED;
    }
    return state;
}

apr_status_t mdl_email_queue(mdl_db_t *db, const mdl_email_new_t *email, apr_pool_t *p)
{
    const char *message_id = apr_pstrcat(p, mdl_ulid("", p), "@", email->host, NULL);
    int to_be_sent = is_to_be_sent(email);
    mdl_email_status_t status = to_be_sent ? MDL_EMAIL_QUEUED : MDL_EMAIL_NO_RECIPIENT;
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(EMAIL_INSERT, .shop_id = email->shop_id,
                                 .order_id = email->order_id, .recipient = email->to,
                                 .message_id = message_id, .status = mdl_email_status_names[status],
                                 .held = to_be_sent && email->held, .is_late = email->is_late,
                                 .help_id = email->help_id, .request_id = mdl_db_request(db),
                                 .now = apr_time_now()));
    if (rv == APR_SUCCESS && email->to != NULL && !email->held) {
        rv = email->at_once ? email_insert_job_at(db, email->shop_id, mdl_rows_int(row, 0), 0, p)
                            : email_insert_job(db, email->shop_id, mdl_rows_int(row, 0), p);
    }
    return rv;
}

apr_status_t mdl_email_hold(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, 2, sizeof(apr_int64_t));
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(EMAIL_CANCEL_JOBS, .now = apr_time_now(), .order_id = order_id));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return rv == APR_SUCCESS && ids->nelts > 0 ? mdl_db_exec(db, NULL, p, MDL_Q(EMAIL_HOLD, ids))
                                               : rv;
}

apr_status_t mdl_email_hold_again(mdl_db_t *db, apr_int64_t id, const char *job_id, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(EMAIL_LOCK_ORDER, id));

    if (rv != APR_SUCCESS || mdl_rows_enum(row, 0, mdl_order_access_names) != MDL_ORDER_HELD) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    rv = mdl_db_exec(db, NULL, p, MDL_Q(EMAIL_CANCEL_JOB, .now = apr_time_now(), .id = job_id));
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(EMAIL_HOLD, mdl_ids_of(id, p))) : rv;
}

apr_status_t mdl_email_release(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                               apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(EMAIL_RELEASE, order_id));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        rv = MDL_NULL(rows, email_release, recipient)
                 ? APR_SUCCESS
                 : email_insert_job(db, shop_id, MDL_INT(rows, email_release, id), p);
    }
    return rv;
}

int mdl_email_is_awaited(const mdl_email_state_t *state)
{
    return state->to == NULL &&
           (state->status == MDL_EMAIL_QUEUED || state->status == MDL_EMAIL_HELD);
}

static apr_status_t emails_address(mdl_db_t *db, apr_int64_t shop_id,
                                   const apr_array_header_t *order_ids, const char *to,
                                   apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(EMAIL_ADDRESS, .recipient = to, .ids = order_ids));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        rv = MDL_INT(rows, email_address, held)
                 ? APR_SUCCESS
                 : email_insert_job(db, shop_id, MDL_INT(rows, email_address, id), p);
    }
    return rv;
}

apr_status_t mdl_email_address(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                               const char *to, apr_pool_t *p)
{
    apr_status_t rv = emails_address(db, shop_id, mdl_ids_of(order_id, p), to, p);

    return rv == APR_SUCCESS ? mdl_timeline_touch(db, order_id, p) : rv;
}

apr_status_t mdl_email_redirect(mdl_db_t *db, apr_int64_t shop_id,
                                const apr_array_header_t *order_ids, const char *to, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(db, NULL, p,
                                  MDL_Q(EMAILS_REDIRECT, .recipient = to, .ids = order_ids));

    return rv == APR_SUCCESS ? emails_address(db, shop_id, order_ids, to, p) : rv;
}

apr_status_t mdl_email_give_up(mdl_db_t *db, apr_int64_t order_id, const char *why, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(
        db, NULL, p, MDL_Q(EMAIL_NO_RECIPIENT, .last_error = why, .order_id = order_id));

    return rv == APR_SUCCESS ? mdl_timeline_touch(db, order_id, p) : rv;
}

apr_status_t mdl_email_await(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(EMAIL_AWAIT, order_id));

    return rv == APR_SUCCESS ? mdl_timeline_touch(db, order_id, p) : rv;
}

apr_status_t mdl_email_is_delayed(mdl_db_t *db, apr_int64_t order_id, int *delayed, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(EMAIL_DELAYED, .now = apr_time_now(), .order_id = order_id));

    *delayed = rv == APR_SUCCESS;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_email_find_all(mdl_db_t *db, const apr_array_header_t *ids,
                                apr_array_header_t **emails, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(EMAILS_BY_ID, ids));

    *emails = apr_array_make(p, ids->nelts, sizeof(mdl_email_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*emails, mdl_email_t) = (mdl_email_t){
            .id = MDL_INT(rows, emails_by_id, id),
            .order_id = MDL_INT(rows, emails_by_id, order_id),
            .to = MDL_TEXT(rows, emails_by_id, recipient),
            .message_id = MDL_TEXT(rows, emails_by_id, message_id),
            .help_id = MDL_INT(rows, emails_by_id, help_id),
            .help_answer = MDL_TEXT(rows, emails_by_id, help_answer),
            .is_late = MDL_INT(rows, emails_by_id, is_late) != 0,
            .from_name = MDL_TEXT(rows, emails_by_id, from_name),
            .reply_to = MDL_TEXT(rows, emails_by_id, reply_to)};
    }
    return rv;
}

apr_status_t mdl_email_result(mdl_db_t *db, apr_int64_t id, mdl_email_status_t status, int attempts,
                              const char *sent_to, const char *words, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    int is_sent = status == MDL_EMAIL_SENT;
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(ORDER_TOUCH_OF_EMAIL, .now = now, .id = id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(EMAIL_RESULT, .status = mdl_email_status_names[status],
                           .attempts = attempts, .sent_to = sent_to,
                           .error = is_sent ? NULL : words, .response = is_sent ? words : NULL,
                           .sent_at = is_sent ? now : 0, .id = id));
    return rv == APR_SUCCESS && status != MDL_EMAIL_QUEUED
               ? mdl_event_add_of_email(db, is_sent ? MDL_EVENT_EMAIL_SENT : MDL_EVENT_EMAIL_FAILED,
                                        id, p)
               : rv;
}

apr_status_t mdl_emails_tried(mdl_db_t *db, apr_pool_t *p, mdl_emails_tried_t *tried)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(EMAILS_TRIED, tried->limit));

    tried->count = tried->sent = 0;
    tried->newest_at = 0;
    tried->error = NULL;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        if (tried->count++ == 0) {
            tried->error = MDL_TEXT(rows, emails_tried, last_error);
            tried->newest_at = MDL_INT(rows, emails_tried, created_at);
        }
        tried->sent += MDL_ENUM(rows, emails_tried, status, mdl_email_status_names) ==
                       MDL_EMAIL_SENT;
    }
    return rv;
}
