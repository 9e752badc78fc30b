/*
 * The look-up of an order's customer and risk at the shop's storefront: a job that is queued in the
 * transaction that needs it.  Emails and the fraud check wait for its result.  An order has at most
 * one at a time.
 */
#ifndef MDL_CORE_ORDER_LOOKUP_H
#define MDL_CORE_ORDER_LOOKUP_H

#include "core/order/fraud.h"
#include "core/job.h"
#include "core/problem.h"
#include "platform/platform.h"

/** Called by an effect that has locked the order: queues a look-up if the order needs one, its shop
    is connected to a storefront and no look-up is under way. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t order_id;
    int wanted;
    int open; /* out: whether one is under way now */
} mdl_lookup_want_t;
apr_status_t mdl_lookup_want(mdl_db_t *db, mdl_lookup_want_t *want, apr_pool_t *p);

/** What a look-up is about. */
typedef struct {
    apr_int64_t order_id;
    apr_int64_t shop_id;
    apr_int64_t customer_id;
    const char *storefront_order_id;
    const char *storefront_customer_id;
    const char *email;  /* of the customer, now; may be NULL, like the next two */
    const char *url;    /* of the connection */
    const char *sealed; /* its token */
    int for_risk;       /* the fraud check waits for the order's risk */
    int for_email;      /* an email waits for the customer's address */
} mdl_lookup_t;

/** Reads what a look-up for this order is about; APR_ENOENT when there is no such order. */
apr_status_t mdl_lookup_find(mdl_db_t *db, apr_int64_t order_id, mdl_lookup_t *lookup,
                             apr_pool_t *p);

/** How a look-up has ended. */
typedef struct {
    const mdl_fraud_rules_t *rules;
    const mdl_platform_found_t *found; /* members that are not known are NULL */
    const char *failure;               /* a sentence on why it failed; NULL: it succeeded */
    int asked_risk;
} mdl_lookup_result_t;

/**
 * In the transaction that ends the job: stores what was found unless a value is known already,
 * gives the waiting emails their address, or notes that there is none, and lets the fraud check
 * continue.  Locks the customer, then the order.
 */
apr_status_t mdl_lookup_settle(mdl_db_t *db, apr_int64_t order_id,
                               const mdl_lookup_result_t *result, apr_pool_t *p);

/** In the transaction that cancels a look-up: releases what waits for it, as a failed one does. */
apr_status_t mdl_lookup_cancelled(mdl_db_t *db, const mdl_fraud_rules_t *rules,
                                  apr_int64_t order_id, apr_pool_t *p);

/** In the transaction that queues a look-up again: an email that had no recipient waits for an
    address again.  Refused: 409 job_finished when another look-up of the order is under way. */
apr_status_t mdl_lookup_retried(mdl_db_t *db, const mdl_job_t *job, mdl_problem_t *problem,
                                apr_pool_t *p);

/** Asks for an order's last look-up. */
apr_status_t mdl_lookup_ask_latest(mdl_db_t *db, apr_int64_t order_id, mdl_rows_t **rows,
                                   apr_pool_t *p);

/** Reads its status and its error, NULL if it has none; false if there was no look-up. */
int mdl_lookup_read_latest(mdl_rows_t *rows, mdl_job_status_t *status, const char **error);

#endif
