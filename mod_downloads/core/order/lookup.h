/*
 * The look-up of an order's customer and risk at the shop's storefront: a job, queued in the
 * transaction that needs its result.  Emails and the fraud check wait for it.  An order has at most
 * one open look-up.
 */
#ifndef MDL_CORE_ORDER_LOOKUP_H
#define MDL_CORE_ORDER_LOOKUP_H

#include "core/order/fraud.h"
#include "core/job.h"
#include "core/problem.h"
#include "platform/platform.h"

/** Queues a look-up if it is wanted, the shop has a storefront and the order has no open look-up.
    The caller has locked the order. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t order_id;
    int wanted;
    int open; /* out: whether the order has an open look-up now */
} mdl_lookup_want_t;
apr_status_t mdl_lookup_want(mdl_db_t *db, mdl_lookup_want_t *want, apr_pool_t *p);

/** What a look-up needs to know. */
typedef struct {
    apr_int64_t order_id;
    apr_int64_t shop_id;
    apr_int64_t customer_id;
    const char *storefront_order_id;
    const char *storefront_customer_id;
    const char *email;  /* of the customer; may be NULL, like the next two */
    const char *url;    /* of the storefront */
    const char *sealed; /* the storefront's token, sealed */
    int for_risk;       /* the fraud check waits for the order's risk */
    int for_email;      /* an email waits for the customer's address */
} mdl_lookup_t;

/** Reads what a look-up for this order needs; APR_ENOENT when there is no such order. */
apr_status_t mdl_lookup_find(mdl_db_t *db, apr_int64_t order_id, mdl_lookup_t *lookup,
                             apr_pool_t *p);

/** The result of a look-up. */
typedef struct {
    const mdl_fraud_rules_t *rules;
    const mdl_platform_found_t *found; /* unknown members are NULL */
    const char *failure;               /* a sentence on why it failed; NULL: it succeeded */
    int asked_risk;
} mdl_lookup_result_t;

/**
 * In the transaction that ends the job: stores the answer where no value is known yet, gives the
 * waiting emails their address or records that there is none, and repeats the fraud check.  Locks
 * the customer, then the order.
 */
apr_status_t mdl_lookup_settle(mdl_db_t *db, apr_int64_t order_id,
                               const mdl_lookup_result_t *result, apr_pool_t *p);

/** In the transaction that cancels a look-up: does the same as for a failed one. */
apr_status_t mdl_lookup_cancelled(mdl_db_t *db, const mdl_fraud_rules_t *rules,
                                  apr_int64_t order_id, apr_pool_t *p);

/** In the transaction that queues a look-up again: lets an email without recipient wait for an
    address again.  Refused: 409 job_finished when the order has another open look-up. */
apr_status_t mdl_lookup_retried(mdl_db_t *db, const mdl_job_t *job, mdl_problem_t *problem,
                                apr_pool_t *p);

/** Asks for an order's latest look-up. */
apr_status_t mdl_lookup_ask_latest(mdl_db_t *db, apr_int64_t order_id, mdl_rows_t **rows,
                                   apr_pool_t *p);

/** Reads its status and its error (NULL: none); false if there was no look-up. */
int mdl_lookup_read_latest(mdl_rows_t *rows, mdl_job_status_t *status, const char **error);

#endif
