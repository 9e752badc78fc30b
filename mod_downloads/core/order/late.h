/*
 * Late keys and files (contract, section 10): an email that left while something was missing is
 * followed by one more, once everything is there.  The job late_email waits for that.  An order has
 * at most one such job, and gets at most one such email a day.
 */
#ifndef MDL_CORE_ORDER_LATE_H
#define MDL_CORE_ORDER_LATE_H

#include "core/order/order.h"

/** Whether open assignments lack license keys, or files that are being prepared or have failed. */
int mdl_late_is_partial(const mdl_order_t *order, apr_time_t now);

/** After an email was sent in which something was missing: queues the job, unless the order has
    one.  The caller has locked the order (mdl_email_result). */
apr_status_t mdl_late_owe(mdl_db_t *db, apr_int64_t shop_id, const mdl_email_t *email,
                          apr_pool_t *p);

typedef enum {
    MDL_LATE_OVER, /* nothing is owed any more */
    MDL_LATE_WAITS,
    MDL_LATE_DUE /* everything is there, and the customer has yet to be told */
} mdl_late_state_t;

/** What an order owes. */
typedef struct {
    mdl_late_state_t state;
    apr_time_t look_at;       /* when it waits */
    const mdl_order_t *order; /* when it is due */
} mdl_late_t;

/** Finds out what the order of a job's email owes now. */
apr_status_t mdl_late_look(mdl_db_t *db, const mdl_job_t *job, mdl_late_t *late, apr_pool_t *p);

/** Ends a job that no longer had to wait: locks the order, looks again, and queues the email or,
    if the order has to wait after all, another job. */
apr_status_t mdl_late_settle(mdl_db_t *db, const mdl_job_t *job, const char *mail_host,
                             apr_pool_t *p);

#endif
