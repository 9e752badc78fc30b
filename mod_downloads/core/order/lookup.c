#include "core/order/lookup.h"

#include <apr_time.h>

#include "base/ulid.h"
#include "core/order/email.h"
#include "core/order/order_words.h"
#include "core/order/timeline.h"
#include "core/order/typo.h"

/* The delay doubles each time: by default, this outlasts an outage of about six hours. */
#define MAX_ATTEMPTS 12

static apr_status_t lookup_find_open(mdl_db_t *db, apr_int64_t order_id, const char *but, int *open,
                                     apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(LOOKUP_OPEN, .order_id = order_id, .but = but));

    *open = rv == APR_SUCCESS;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t lookup_insert_job(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                                      apr_pool_t *p)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_LOOKUP,
                     .lane = MDL_LANE_LOOKUP,
                     .shop_id = shop_id,
                     .order_id = order_id,
                     .max_attempts = MAX_ATTEMPTS};

    return mdl_job_insert(db, &job, p);
}

apr_status_t mdl_lookup_want(mdl_db_t *db, mdl_lookup_want_t *want, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = lookup_find_open(db, want->order_id, "", &want->open, p);

    if (rv != APR_SUCCESS || want->open || !want->wanted) {
        return rv;
    }
    rv = mdl_db_select_one(db, &row, p, MDL_Q(STOREFRONT_OF_SHOP, want->shop_id));
    if (rv == APR_SUCCESS && !mdl_rows_null(row, 0)) {
        want->open = 1;
        rv = lookup_insert_job(db, want->shop_id, want->order_id, p);
    }
    return rv;
}

apr_status_t mdl_lookup_find(mdl_db_t *db, apr_int64_t order_id, mdl_lookup_t *lookup,
                             apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(LOOKUP_SUBJECT, order_id));

    if (rv == APR_SUCCESS) {
        lookup->order_id = order_id;
        MDL_READ(row, lookup_subject, lookup, shop_id, storefront_order_id, customer_id,
                 storefront_customer_id, email);
        lookup->url = MDL_TEXT(row, lookup_subject, storefront_url);
        lookup->sealed = MDL_TEXT(row, lookup_subject, storefront_token);
        MDL_READ(row, lookup_subject, lookup, for_risk, for_email);
    }
    return rv;
}

/* Locks the customer before the order, as an assignment does. */
static apr_status_t lookup_store(mdl_db_t *db, const mdl_lookup_t *lookup,
                                 const mdl_platform_found_t *found, apr_pool_t *p)
{
    apr_int64_t changed;
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = mdl_db_exec(db, &changed, p,
                          MDL_Q(CUSTOMER_COMPLETE, .email = found->email,
                                .first_name = found->first_name, .last_name = found->last_name,
                                .locale = found->locale, .now = apr_time_now(),
                                .id = lookup->customer_id))) != APR_SUCCESS ||
        (rv = mdl_db_select_one(db, &row, p, MDL_Q(ORDER_LOCK_BY_ID, lookup->order_id))) !=
            APR_SUCCESS ||
        (rv = mdl_db_exec(
             db, NULL, p,
             MDL_Q(ORDER_SET_STOREFRONT, .risk = found->rated ? mdl_risk_names[found->risk] : NULL,
                   .client_ip = found->client_ip, .id = lookup->order_id))) != APR_SUCCESS) {
        return rv;
    }
    if (changed == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_customer_store_words(db, lookup->customer_id, p);
    return rv == APR_SUCCESS ? mdl_timeline_touch(db, lookup->order_id, p) : rv;
}

static apr_status_t lookup_settle_emails(mdl_db_t *db, const mdl_lookup_t *lookup,
                                         const mdl_lookup_result_t *result, apr_pool_t *p)
{
    if (!lookup->for_email) {
        return APR_SUCCESS;
    }
    return lookup->email != NULL
               ? mdl_email_address(db, lookup->shop_id, lookup->order_id, lookup->email, p)
               : mdl_email_give_up(db, lookup->order_id,
                                   result->failure != NULL
                                       ? result->failure
                                       : "The storefront knows no email address of the customer "
                                         "that can be written to.",
                                   p);
}

apr_status_t mdl_lookup_settle(mdl_db_t *db, apr_int64_t order_id,
                               const mdl_lookup_result_t *result, apr_pool_t *p)
{
    mdl_lookup_t lookup;
    apr_status_t rv;

    if ((rv = mdl_lookup_find(db, order_id, &lookup, p)) != APR_SUCCESS ||
        (rv = lookup_store(db, &lookup, result->found, p)) != APR_SUCCESS ||
        /* again: an assignment may have changed it before the order was locked */
        (rv = mdl_lookup_find(db, order_id, &lookup, p)) != APR_SUCCESS ||
        (rv = mdl_order_note_typo(db, order_id, lookup.email, p)) != APR_SUCCESS ||
        (rv = lookup_settle_emails(db, &lookup, result, p)) != APR_SUCCESS) {
        return rv;
    }
    /* A fraud check began while the storefront was asked only for the customer. */
    if (result->failure == NULL && lookup.for_risk && !result->asked_risk && lookup.url != NULL) {
        return lookup_insert_job(db, lookup.shop_id, order_id, p);
    }
    return mdl_fraud_recheck(db, result->rules, order_id, p);
}

apr_status_t mdl_lookup_cancelled(mdl_db_t *db, const mdl_fraud_rules_t *rules,
                                  apr_int64_t order_id, apr_pool_t *p)
{
    static const mdl_platform_found_t nothing;
    const mdl_lookup_result_t result = {.rules = rules,
                                        .found = &nothing,
                                        .failure = "The look-up at the storefront was cancelled."};

    return mdl_lookup_settle(db, order_id, &result, p);
}

apr_status_t mdl_lookup_retried(mdl_db_t *db, const mdl_job_t *job, mdl_problem_t *problem,
                                apr_pool_t *p)
{
    mdl_rows_t *row;
    int open;
    apr_status_t rv;

    if ((rv = mdl_db_select_one(db, &row, p, MDL_Q(ORDER_LOCK_BY_ID, job->order_id))) !=
            APR_SUCCESS ||
        (rv = lookup_find_open(db, job->order_id, job->id, &open, p)) != APR_SUCCESS) {
        return rv;
    }
    return open ? mdl_problem_set(problem, 409, "job_finished",
                                  "Another look-up of the order is under way.")
                : mdl_email_await(db, job->order_id, p);
}

apr_status_t mdl_lookup_ask_latest(mdl_db_t *db, apr_int64_t order_id, mdl_rows_t **rows,
                                   apr_pool_t *p)
{
    return mdl_db_select(db, rows, p, MDL_Q(LOOKUP_LATEST, order_id));
}

int mdl_lookup_read_latest(mdl_rows_t *rows, mdl_job_status_t *status, const char **error)
{
    if (!mdl_rows_next(rows)) {
        return 0;
    }
    *status = MDL_ENUM(rows, lookup_latest, status, mdl_job_status_names);
    *error = MDL_TEXT(rows, lookup_latest, error_message);
    return 1;
}
