/*
 * The delivery email of an order (contract, section 10), and the email that refuses a request for
 * help: queued in the transaction that causes it, sent by the background process.
 */
#ifndef MDL_CORE_ORDER_EMAIL_H
#define MDL_CORE_ORDER_EMAIL_H

#include "core/job.h"
#include "db/db.h"

typedef enum {
    MDL_EMAIL_NOT_REQUESTED, /* no email was asked for */
    MDL_EMAIL_QUEUED,
    MDL_EMAIL_HELD, /* until the order is released */
    MDL_EMAIL_SENT,
    MDL_EMAIL_FAILED,
    MDL_EMAIL_NO_RECIPIENT,
    MDL_EMAIL_BOUNCED /* after it was sent */
} mdl_email_status_t;
extern const char *const mdl_email_status_names[];

/** The state of an order's newest email. */
typedef struct {
    mdl_email_status_t status;
    const char *to;
    int attempts;
    const char *last_error;
    apr_time_t sent_at;
    apr_time_t bounced_at; /* 0: it did not */
} mdl_email_state_t;

/** Reads a state from a row that has email_columns, from column first on. */
void mdl_email_state_of_row(mdl_email_state_t *state, const mdl_rows_t *row, int first);

/** Reads the state of an order's newest email. */
apr_status_t mdl_email_state(mdl_db_t *db, apr_int64_t order_id, mdl_email_state_t *state,
                             apr_pool_t *p);

/** A delivery email to queue. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t order_id;
    const char *to;      /* NULL: there is no address, and the email is recorded as NO_RECIPIENT */
    const char *host;    /* the right side of the Message-ID */
    int held;            /* whether it waits for mdl_email_release */
    int awaited;         /* with to NULL: whether it waits for mdl_email_address (or …_give_up) */
    int at_once;         /* whether it skips the shop's delay */
    int is_late;         /* whether it tells that what was missing has come (core/order/late.h) */
    apr_int64_t help_id; /* the request for help that it refuses; 0: it is a delivery email */
} mdl_email_new_t;

/** The state of an email just after mdl_email_queue. */
mdl_email_state_t mdl_email_state_of_new(const mdl_email_new_t *email);

/** Queues an email, and its job unless it is held or has no address.  The job is due after the
    shop's delay. */
apr_status_t mdl_email_queue(mdl_db_t *db, const mdl_email_new_t *email, apr_pool_t *p);

/** Holds an order's unsent emails until mdl_email_release. */
apr_status_t mdl_email_hold(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p);

/** Queues the held emails of an order, to the order's current address.  An email that waits for
    an address goes on waiting. */
apr_status_t mdl_email_release(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                               apr_pool_t *p);

/** Whether an order's newest email waits for its address. */
int mdl_email_is_awaited(const mdl_email_state_t *state);

/** Gives an address to the emails of an order that wait for it, and queues them unless held. */
apr_status_t mdl_email_address(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                               const char *to, apr_pool_t *p);

/** Sends the emails of orders that wait to be sent to another address.  The caller has locked the
    orders, and moves their updated_at. */
apr_status_t mdl_email_redirect(mdl_db_t *db, apr_int64_t shop_id,
                                const apr_array_header_t *order_ids, const char *to, apr_pool_t *p);

/** Records that these emails get no address; why is a sentence. */
apr_status_t mdl_email_give_up(mdl_db_t *db, apr_int64_t order_id, const char *why, apr_pool_t *p);

/** Makes an order's newest email wait for an address again if it had no recipient. */
apr_status_t mdl_email_await(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p);

/** Finds out whether an order's newest email still waits for the shop's delay to end.  Such an
    email will include what this transaction adds to the order. */
apr_status_t mdl_email_is_delayed(mdl_db_t *db, apr_int64_t order_id, int *delayed, apr_pool_t *p);

/** Holds an email whose job was just queued again, if its order is held by now.  Locks the
    order. */
apr_status_t mdl_email_hold_again(mdl_db_t *db, apr_int64_t id, const char *job_id, apr_pool_t *p);

/** An email to send. */
typedef struct {
    apr_int64_t id;
    apr_int64_t order_id;
    const char *to;
    const char *message_id;
    int is_late;
    apr_int64_t help_id;     /* as in mdl_email_new_t */
    const char *help_answer; /* what the shop writes to refuse it, or NULL */
    const char *from_name;
    const char *reply_to; /* or NULL */
} mdl_email_t;

/** Reads the emails (mdl_email_t) with these ids, in any order. */
apr_status_t mdl_email_find_all(mdl_db_t *db, const apr_array_header_t *ids,
                                apr_array_header_t **emails, apr_pool_t *p);

/** Records the result of an attempt: QUEUED, SENT or FAILED, where it went, which may be no longer
    the order's address (NULL: it was not tried, or is tried again), and the server's last words, or
    NULL: an error, or what it said when it took the email. */
apr_status_t mdl_email_result(mdl_db_t *db, apr_int64_t id, mdl_email_status_t status, int attempts,
                              const char *sent_to, const char *words, apr_pool_t *p);

/** Effect: reads how the newest emails with an attempt ended, over all shops.  Looks at the newest
    1,000 emails. */
typedef struct {
    int limit;            /* of emails with an attempt */
    int count;            /* out, like all that follows: emails with an attempt */
    int sent;             /* how many of them were sent */
    apr_time_t newest_at; /* when the newest was queued; 0: there is none */
    const char *error;    /* of the newest; NULL: none */
} mdl_emails_tried_t;
apr_status_t mdl_emails_tried(mdl_db_t *db, apr_pool_t *p, mdl_emails_tried_t *tried);

#endif
