/*
 * The shop's answer to a customer who asks for help with an order.
 */
#ifndef MDL_CORE_ORDER_HELP_ANSWER_H
#define MDL_CORE_ORDER_HELP_ANSWER_H

#include "core/order/access.h"
#include "core/order/help.h"

#define MDL_HELP_EXTEND_DAYS 7

typedef enum {
    MDL_HELP_ONE_MORE, /* one more download of each file, and the email again */
    MDL_HELP_EXTEND,   /* MDL_HELP_EXTEND_DAYS more days, and the email again */
    MDL_HELP_RESEND,   /* the email again */
    MDL_HELP_REFUSE    /* nothing; the customer reads the reason on the page and in an email */
} mdl_help_answer_kind_t;
extern const char *const mdl_help_answer_names[];

/** The verb of an answer's entry in the audit. */
extern const char *const mdl_help_answer_actions[];

/**
 * Effect: answers a request that waits; each request is answered once.  Adds the timeline entries
 * of what it does, or "help_refused".  An email is sent only if the order has an address.
 * Refused: 404 order_not_found or help_request_not_found; 409 help_not_asked when the request does
 * not wait; unless it is refused, 409 order_held and access_revoked when the order would give
 * nothing even then; 409 access_unlimited when no access ends that could be extended; 422
 * no_recipient and 429 rate_limited as mdl_order_resend has it.
 */
typedef struct {
    mdl_access_t access;    /* of the whole order; storefront_order_id NULL: that of the request */
    apr_int64_t request_id; /* 0: the order's request that waits */
    mdl_help_answer_kind_t kind;
    const char *mail_host;      /* right side of a Message-ID */
    int retry_after;            /* out: seconds, with 429 */
    mdl_help_request_t request; /* out */
} mdl_help_answer_t;
apr_status_t mdl_help_answer(mdl_db_t *db, apr_pool_t *p, mdl_help_answer_t *answer);

#endif
