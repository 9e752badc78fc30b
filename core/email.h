/*
 * The delivery email of an order (contract, section 10): queued in the transaction that causes it,
 * sent by the background process.
 */
#ifndef MDL_CORE_EMAIL_H
#define MDL_CORE_EMAIL_H

#include "core/job.h"
#include "db/db.h"

typedef struct {
    const char *status; /* "not_requested", "queued", "sent", "failed", "no_recipient" */
    const char *to;
    int attempts;
    const char *last_error;
    apr_time_t sent_at;
} mdl_email_state_t;

/** Reads the state of an order's newest email; "not_requested" when there is none. */
apr_status_t mdl_email_state(mdl_db_t *db, apr_int64_t order_id, mdl_email_state_t *state,
                             apr_pool_t *p);

/**
 * Queues the delivery email of an order, with its job; without an address it is only noted that
 * there was none.  host is the right side of the Message-ID.
 */
apr_status_t mdl_email_queue(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t order_id,
                             const char *to, const char *host, apr_pool_t *p);

/** An email to be sent. */
typedef struct {
    apr_int64_t id;
    apr_int64_t order_id;
    const char *to;
    const char *message_id;
    apr_time_t created_at;
} mdl_email_t;

/** APR_ENOENT when there is none. */
apr_status_t mdl_email_find(mdl_db_t *db, apr_int64_t id, mdl_email_t *email, apr_pool_t *p);

/** Notes the result of an attempt: a status of the above and the server's words. */
apr_status_t mdl_email_result(mdl_db_t *db, apr_int64_t id, const char *status, int attempts,
                              const char *words, apr_pool_t *p);

#endif
