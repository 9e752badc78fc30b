/*
 * Sends an order's delivery email again.
 */
#ifndef MDL_CORE_ORDER_RESEND_H
#define MDL_CORE_ORDER_RESEND_H

#include "core/order/order.h"

/** How often an order's email may be sent again within an hour. */
#define MDL_RESENDS_AN_HOUR 3

/**
 * Effect: queues another delivery email and adds the timeline entry "email_resent".  The order's
 * address does not change.  Refused: 404 order_not_found; 409 order_held; 409
 * access_revoked, also when none of the order's assignments is open; 422 no_recipient; 429
 * rate_limited with retry_after.
 */
typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const char *key_id;                 /* the API key that asks; NULL: user asks */
    const char *user;                   /* the member */
    const char *reason;                 /* or NULL */
    const char *to;                     /* NULL: the order's address */
    const char *mail_host;              /* right side of the Message-ID */
    const apr_array_header_t *versions; /* as in mdl_entity_ref_t */
    int default_download_limit;
    int retry_after;    /* out: seconds */
    mdl_order_t *order; /* out */
    mdl_problem_t *problem;
} mdl_order_resend_t;
apr_status_t mdl_order_resend(mdl_db_t *db, apr_pool_t *p, mdl_order_resend_t *resend);

#endif
