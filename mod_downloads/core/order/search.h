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
 * Effect that finds a shop's orders that fit all filters that are given, newest first: by
 * created_at, or by updated_at with updated_since, or by id with product.  It looks at no more than
 * 1,000 orders (of an email address's first 100 customers each), so that it may find fewer than
 * there are, or none, and still have a next place.
 */
typedef struct {
    apr_int64_t shop_id;
    const char *access;        /* the name of a state, or NULL */
    const char *customer;      /* a storefront_customer_id, or NULL */
    const char *email;         /* of the customer, in any case, or NULL */
    const char *product;       /* a storefront_product_id of an assignment, or NULL */
    const char *email_status;  /* the name of that of the newest email, or NULL */
    apr_time_t created_since;  /* or 0 */
    apr_time_t created_before; /* or 0 */
    apr_time_t updated_since;  /* or 0 */
    const char *after;         /* a place that another call gave; NULL: from the beginning */
    int limit;
    apr_array_header_t *places; /* out: mdl_order_place_t */
    const char *next;           /* out: where to go on; NULL: there are no more */
} mdl_order_filter_t;

typedef struct {
    apr_int64_t id;
    const char *text; /* for "after", to go on behind this order */
} mdl_order_place_t;

/** Whether a text is a place. */
int mdl_order_place_valid(const char *text);

apr_status_t mdl_order_filter(mdl_db_t *db, apr_pool_t *p, mdl_order_filter_t *filter);

/**
 * Effect that reads orders of a shop that fit the filter.  With a text: of them those of the
 * customer with this address, if it has an "@", in either case; else those of the customer with
 * this number, and those whose own number begins with it, at most limit of either, among the first
 * 1,000 of either.
 */
typedef struct {
    const char *text; /* or NULL */
    mdl_order_filter_t filter;
    apr_array_header_t *found; /* out: mdl_order_line_t *; none twice */
    int more;                  /* out, with a number: there may be others */
} mdl_order_search_t;
apr_status_t mdl_order_search(mdl_db_t *db, apr_pool_t *p, mdl_order_search_t *search);

#endif
