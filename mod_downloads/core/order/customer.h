/*
 * A customer of a shop, whose address goes for all orders that have none of their own.
 */
#ifndef MDL_CORE_ORDER_CUSTOMER_H
#define MDL_CORE_ORDER_CUSTOMER_H

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "core/order/order.h"

/** The orders that follow a customer's new address: the newest. */
#define MDL_CUSTOMER_ORDERS_MAX 1000

/** Effect: reads a customer (mdl_customer_t), or the one into whom the customer was merged; ref
   gets that one's id.  Refused: 404 customer_not_found. */
apr_status_t mdl_customer_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Reads customers (mdl_customer_t *) of a shop by their ids, in the order of these. */
apr_status_t mdl_customers_read(mdl_db_t *db, apr_int64_t shop_id, const apr_array_header_t *ids,
                                apr_array_header_t **customers, apr_pool_t *p);

/** Effect: finds customers by the words of a text (core/search_word.h). */
typedef struct {
    apr_int64_t shop_id;
    const char *text; /* NULL: nobody is found */
    int limit;
    apr_array_header_t *found; /* out: mdl_customer_t * */
} mdl_customer_search_t;
apr_status_t mdl_customer_search(mdl_db_t *db, apr_pool_t *p, mdl_customer_search_t *search);

/** Effect: reads a page of mdl_customer_t, in the order of the storefront's numbers, or those with
    an email address. */
typedef struct {
    mdl_list_page_t page; /* before is ignored */
    const char *email;    /* in any case; or NULL */
} mdl_customer_list_t;
apr_status_t mdl_customer_list(mdl_db_t *db, apr_pool_t *p, mdl_customer_list_t *list);

/** Reads the ids (apr_int64_t) of a customer's newest orders. */
apr_status_t mdl_customer_orders(mdl_db_t *db, apr_int64_t id, int limit, apr_array_header_t **ids,
                                 apr_pool_t *p);

/**
 * Effect: corrects a customer's address.  A source that repeats the former address later changes
 * nothing.  The orders without an address of their own follow, with their emails that wait to be
 * sent; each gets the timeline entry "address_changed".  Adds one event, unless nothing changes.
 * Refused: 404 customer_not_found, 412 precondition_failed.
 */
typedef struct {
    mdl_entity_ref_t ref;
    const char *email;    /* NULL: nothing changes */
    int clear_recipients; /* whether orders lose addresses of their own, and follow */
    int rotate_links;     /* whether the pages of the orders that follow get other addresses */
    const char *key_id;   /* the API key that asks; NULL: user asks */
    const char *user;     /* the member */
    const char *reason;   /* or NULL */
} mdl_customer_change_t;
apr_status_t mdl_customer_change(mdl_db_t *db, apr_pool_t *p, mdl_customer_change_t *change);

#endif
