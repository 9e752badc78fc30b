/*
 * The delivery email of an order (contract, section 10): queued in the transaction that causes it,
 * sent by the background process.
 */
#ifndef MDL_CORE_ORDER_EMAIL_H
#define MDL_CORE_ORDER_EMAIL_H

#include "core/job.h"
#include "db/db.h"

typedef enum {
    MDL_EMAIL_NOT_REQUESTED, /* there is none */
    MDL_EMAIL_QUEUED,
    MDL_EMAIL_HELD, /* until the order is released */
    MDL_EMAIL_SENT,
    MDL_EMAIL_FAILED,
    MDL_EMAIL_NO_RECIPIENT,
    MDL_EMAIL_BOUNCED /* after it was sent */
} mdl_email_status_t;
extern const char *const mdl_email_status_names[];

/** How an order's newest email stands. */
typedef struct {
    mdl_email_status_t status;
    const char *to;
    int attempts;
    const char *last_error;
    apr_time_t sent_at;
} mdl_email_state_t;

/** Takes a state over from a row of emails_latest, whose columns begin at first. */
void mdl_email_state_of_row(mdl_email_state_t *state, const mdl_rows_t *row, int first);

/** Reads the state of an order's newest email. */
apr_status_t mdl_email_state(mdl_db_t *db, apr_int64_t order_id, mdl_email_state_t *state,
                             apr_pool_t *p);

/** A delivery email of an order to be queued. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t order_id;
    const char *to;   /* NULL: it is only noted that there was no address */
    const char *host; /* right side of the Message-ID */
    int held;         /* whether it waits for mdl_email_release */
    int awaited;      /* with to NULL: it waits for mdl_email_address or mdl_email_give_up */
    int at_once;      /* without the shop's delay */
} mdl_email_new_t;

/** Queues an email, with its job unless it is held.  The job is due when the shop's delay is over.
 */
apr_status_t mdl_email_queue(mdl_db_t *db, const mdl_email_new_t *email, apr_pool_t *p);

/** Holds back the emails of an order that wait to be sent, until mdl_email_release. */
apr_status_t mdl_email_hold(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p);

/** Queues the emails of an order that were held, to the address that its customer has by now; one
    whose address is awaited goes on waiting for that. */
apr_status_t mdl_email_release(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                               apr_pool_t *p);

/** Whether the address of an order's newest email is awaited. */
int mdl_email_is_awaited(const mdl_email_state_t *state);

/** Gives the emails of an order whose address is awaited this one, and queues them unless held. */
apr_status_t mdl_email_address(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                               const char *to, apr_pool_t *p);

/** Notes that there is no address for them, and in a sentence why. */
apr_status_t mdl_email_give_up(mdl_db_t *db, apr_int64_t order_id, const char *why, apr_pool_t *p);

/** Has an order's newest email, when it had no recipient, wait for an address again. */
apr_status_t mdl_email_await(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p);

/** Finds whether an order's newest email still waits for the end of the shop's delay.  If so it
    tells of everything that this transaction adds to the order. */
apr_status_t mdl_email_is_delayed(mdl_db_t *db, apr_int64_t order_id, int *delayed, apr_pool_t *p);

/** Takes an email back whose job has just been put back into the queue, when its order is held
    meanwhile.  Locks the order. */
apr_status_t mdl_email_hold_again(mdl_db_t *db, apr_int64_t id, const char *job_id, apr_pool_t *p);

/** An email to be sent. */
typedef struct {
    apr_int64_t id;
    apr_int64_t order_id;
    const char *to;
    const char *message_id;
    const char *from_name;
    const char *reply_to; /* or NULL */
} mdl_email_t;

/** APR_ENOENT when there is none. */
apr_status_t mdl_email_find(mdl_db_t *db, apr_int64_t id, mdl_email_t *email, apr_pool_t *p);

/** Notes the result of an attempt: QUEUED, SENT or FAILED, and the server's error. */
apr_status_t mdl_email_result(mdl_db_t *db, apr_int64_t id, mdl_email_status_t status, int attempts,
                              const char *error, apr_pool_t *p);

#endif
