/*
 * Finding an order among a million: what a shop's staff type in, and how an order stands.
 */
#ifndef MDL_CORE_ORDER_SEARCH_H
#define MDL_CORE_ORDER_SEARCH_H

#include "core/order/email.h"
#include "core/order/state.h"
#include "db/db.h"

#define MDL_SEARCH_TEXT_MAX 254 /* bytes, those of an address */

/** An order as a list shows it. */
typedef struct {
    apr_int64_t id;
    const char *storefront_order_id;
    mdl_order_access_t access;
    apr_time_t created_at;
    const char *storefront_customer_id;
    const char *email; /* of the customer, or NULL, as the next two */
    const char *first_name;
    const char *last_name;
    mdl_email_status_t email_status; /* of the newest email */
} mdl_order_line_t;

/**
 * Effect that reads orders of a shop.  With a text: those of the customer with this address, if it
 * has an "@", in either case; else those of the customer with this number, and those whose own
 * number begins with it, at most limit of either.  Without: the newest, page by page.
 */
typedef struct {
    apr_int64_t shop_id;
    const char *text;          /* or NULL */
    mdl_order_access_t access; /* without a text: those in this state; ACTIVE: in any */
    apr_int64_t before;        /* without a text: those with a lower id */
    int limit;
    apr_array_header_t *found; /* out: mdl_order_line_t *; none twice */
    int more;                  /* out: there may be others */
} mdl_order_search_t;
apr_status_t mdl_order_search(mdl_db_t *db, apr_pool_t *p, mdl_order_search_t *search);

#endif
