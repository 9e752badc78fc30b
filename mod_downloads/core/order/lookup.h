/*
 * The look-up of an order's customer and risk at the shop's storefront: a job that is queued in the
 * transaction that needs it, and whose result emails and the fraud check wait for.  An order has
 * one at a time.
 */
#ifndef MDL_CORE_ORDER_LOOKUP_H
#define MDL_CORE_ORDER_LOOKUP_H

#include "core/order/fraud.h"
#include "core/job.h"
#include "core/shop/storefront.h"

/** Effect's part, with the order locked: queues a look-up where an order needs one, its shop has a
    connection and none is under way. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t order_id;
    int wanted;
    int open; /* out: whether one is under way now, whoever wanted it */
} mdl_lookup_want_t;
apr_status_t mdl_lookup_want(mdl_db_t *db, mdl_lookup_want_t *want, apr_pool_t *p);

/** What a look-up is about. */
typedef struct {
    apr_int64_t order_id;
    apr_int64_t shop_id;
    apr_int64_t customer_id;
    const char *storefront_order_id;
    const char *storefront_customer_id;
    const char *email;  /* of the customer, by now; NULL, as the next two */
    const char *url;    /* of the connection */
    const char *sealed; /* its token */
    int for_risk;       /* the fraud check waits for the order's risk */
    int for_email;      /* an email waits for its address */
} mdl_lookup_t;

/** Reads what a look-up for this order would be about; APR_ENOENT. */
apr_status_t mdl_lookup_find(mdl_db_t *db, apr_int64_t order_id, mdl_lookup_t *lookup,
                             apr_pool_t *p);

/** How a look-up has ended. */
typedef struct {
    const mdl_fraud_rules_t *rules;
    const mdl_storefront_found_t *found; /* nothing in it counts as not known */
    const char *failure;                 /* why it failed, for people; NULL: it did not */
    int asked_risk;
} mdl_lookup_result_t;

/**
 * In the transaction that ends the job: keeps what was found where nothing is known, gives the
 * emails that wait their address, or notes that there is none, and has the fraud check go on. Locks
 * the customer, then the order.
 */
apr_status_t mdl_lookup_settle(mdl_db_t *db, apr_int64_t order_id,
                               const mdl_lookup_result_t *result, apr_pool_t *p);

/** In the transaction that cancels a look-up: nothing waits for it any more. */
apr_status_t mdl_lookup_cancelled(mdl_db_t *db, const mdl_fraud_rules_t *rules,
                                  apr_int64_t order_id, apr_pool_t *p);

/** In the transaction that queues a look-up anew: what had no recipient waits again.  Refused: 409
    job_finished when the order has another one under way. */
apr_status_t mdl_lookup_retried(mdl_db_t *db, const mdl_job_t *job, mdl_problem_t *problem,
                                apr_pool_t *p);

/** Reads how the newest look-up of an order stands, and why it failed; both NULL when there is
    none. */
apr_status_t mdl_lookup_latest(mdl_db_t *db, apr_int64_t order_id, const char **status,
                               const char **error, apr_pool_t *p);

#endif
