/*
 * Changes where an order's emails go, and how it is called.
 */
#ifndef MDL_CORE_ORDER_CHANGE_H
#define MDL_CORE_ORDER_CHANGE_H

#include "core/order/access.h"

/**
 * Effect: gives an order a name, or an address of its own, which goes before its customer's, in
 * every state of the order.  Emails that wait to be sent go there.  Adds the timeline entry
 * "address_changed" and its event, unless nothing changes.  Refused: 404 order_not_found, 412
 * precondition_failed, and with send_email what mdl_order_resend refuses.
 */
typedef struct {
    mdl_access_t access; /* of the whole order */
    int name_given;
    const char *name;      /* NULL: it has none any more */
    int email_given;       /* whether the address changes */
    const char *email;     /* NULL: the customer's goes for the order again */
    int rotate_link;       /* if the address changes: also replaces the address of the page */
    int send_email;        /* sends the email again, unless one waits to be sent anyway */
    const char *mail_host; /* right side of a Message-ID */
    int retry_after;       /* out: seconds, with 429 */
} mdl_order_change_t;
apr_status_t mdl_order_change(mdl_db_t *db, apr_pool_t *p, mdl_order_change_t *change);

/** The details of a timeline entry "address_changed": the address before and after, NULL for
    unknown, and whether the address of the page was replaced with it. */
const char *mdl_order_address_details(const char *before, const char *after, int link_rotated,
                                      apr_pool_t *p);

#endif
