#include "core/email.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/ulid.h"

/* 1, 5, 15, 30 min, then hourly up to 5 days: 4 attempts in the first hour, 120 after it. */
#define MAX_ATTEMPTS 124

apr_status_t mdl_email_state(mdl_db_t *db, apr_int64_t order_id, mdl_email_state_t *state,
                             apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_EMAIL_LATEST_OF_ORDER, &row, p,
                                        MDL_ARGS(mdl_int(order_id)));

    memset(state, 0, sizeof *state);
    if (rv == APR_ENOENT) {
        state->status = "not_requested";
        return APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        state->status = mdl_rows_text(row, 0);
        state->to = mdl_rows_text(row, 1);
        state->attempts = (int)mdl_rows_int(row, 2);
        state->last_error = mdl_rows_text(row, 3);
        state->sent_at = mdl_rows_int(row, 4);
    }
    return rv;
}

apr_status_t mdl_email_queue(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                             const char *to, const char *host, apr_pool_t *p)
{
    const char *message_id = apr_pstrcat(p, mdl_ulid("", p), "@", host, NULL);
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(
        db, MDL_Q_EMAIL_INSERT, &row, p,
        MDL_ARGS(mdl_int(shop_id), mdl_int(order_id), mdl_text(to), mdl_text(message_id),
                 mdl_text(to != NULL ? "queued" : "no_recipient"), mdl_int(apr_time_now())));
    if (rv == APR_SUCCESS && to != NULL) {
        mdl_job_t job = {.id = mdl_ulid("job_", p),
                         .type = MDL_JOB_EMAIL,
                         .lane = MDL_LANE_MAIL,
                         .shop_id = shop_id,
                         .email_id = mdl_rows_int(row, 0),
                         .max_attempts = MAX_ATTEMPTS};

        rv = mdl_job_insert(db, &job, p);
    }
    return rv;
}

apr_status_t mdl_email_find(mdl_db_t *db, apr_int64_t id, mdl_email_t *email, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_EMAIL_BY_ID, &row, p, MDL_ARGS(mdl_int(id)));

    if (rv == APR_SUCCESS) {
        email->id = id;
        email->order_id = mdl_rows_int(row, 0);
        email->to = mdl_rows_text(row, 1);
        email->message_id = mdl_rows_text(row, 2);
        email->created_at = mdl_rows_int(row, 3);
    }
    return rv;
}

apr_status_t mdl_email_result(mdl_db_t *db, apr_int64_t id, const char *status, int attempts,
                              const char *words, apr_pool_t *p)
{
    int sent = strcmp(status, "sent") == 0;

    return mdl_db_exec(db, MDL_Q_EMAIL_RESULT, NULL, p,
                       MDL_ARGS(mdl_text(status), mdl_int(attempts), mdl_text(words),
                                sent ? mdl_int(apr_time_now()) : mdl_null(), mdl_int(id)));
}
