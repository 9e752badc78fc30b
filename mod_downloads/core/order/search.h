/*
 * Finds orders among a million: by filters, and by what a shop's staff type into the search box.
 */
#ifndef MDL_CORE_ORDER_SEARCH_H
#define MDL_CORE_ORDER_SEARCH_H

#include "core/order/email.h"
#include "core/order/state.h"
#include "db/db.h"

#define MDL_SEARCH_TEXT_MAX 254 /* bytes: the longest email address */

/** An order as a list shows it. */
typedef struct {
    apr_int64_t id;
    const char *storefront_order_id;
    const char *name; /* or NULL */
    mdl_order_access_t access;
    apr_time_t created_at;
    const char *storefront_customer_id; /* NULL: a guest */
    const char *email;                  /* where its emails go, or NULL */
    const char *first_name;             /* of the customer, or NULL, like the next */
    const char *last_name;
    mdl_email_status_t email_status; /* of the newest email */
} mdl_order_line_t;

/** What may keep an order's customer from downloading. */
typedef enum {
    MDL_ORDER_EXPIRED,       /* access to something of it has ended */
    MDL_ORDER_LIMIT_REACHED, /* a file has no download left */
    MDL_ORDER_PREPARING,     /* it follows a mapping with a file that is not there yet */
    MDL_ORDER_KEYS_OWED      /* it waits for license keys */
} mdl_order_attention_t;
extern const char *const mdl_order_attention_names[];

/** Reads the orders with these ids (apr_int64_t), in their order: mdl_order_line_t *. */
apr_status_t mdl_order_lines(mdl_db_t *db, const apr_array_header_t *ids,
                             apr_array_header_t **found, apr_pool_t *p);

/**
 * Effect: finds a shop's orders that fit all given filters, newest first: by created_at, by
 * updated_at with updated_since, by id with product, by the email's id with an email_status that
 * tells of a failure or is held, by the end of access with EXPIRED, or about by id with another
 * attention.  It looks at 1,000 orders at most, and at the first 100 customers with an
 * email address.  So it may find fewer orders than there are, and still return a next place.
 */
typedef struct {
    apr_int64_t shop_id;
    const char *access;       /* the name of a state, or NULL */
    const char *customer;     /* a storefront_customer_id, or NULL */
    const char *email;        /* where its emails go, in any case, or NULL */
    const char *product;      /* a storefront_product_id of an assignment, or NULL */
    const char *email_status; /* of the newest email, or NULL */
    const char *attention;    /* a name of mdl_order_attention_names, or NULL */
    int default_download_limit;
    apr_time_t created_since;  /* or 0 */
    apr_time_t created_before; /* or 0 */
    apr_time_t updated_since;  /* or 0 */
    const char *after;         /* a place from an earlier call; NULL: from the beginning */
    int limit;
    apr_array_header_t *places; /* out: mdl_order_place_t */
    const char *next;           /* out: the place to go on from; NULL: there are no more */
} mdl_order_filter_t;

typedef struct {
    apr_int64_t id;
    const char *text; /* the value of "after" to go on behind this order */
} mdl_order_place_t;

/** Whether a text is a valid place. */
int mdl_order_place_valid(const char *text);

apr_status_t mdl_order_filter(mdl_db_t *db, apr_pool_t *p, mdl_order_filter_t *filter);

/**
 * Effect: reads the shop's orders that fit the filter.  A text with an "@" restricts them to
 * those whose emails go to this address, in any case.  Any other text finds the orders that have
 * its words (core/search_word.h), then the newest of the first 20 customers that have them; with a
 * filter it looks at 1,000.
 */
typedef struct {
    const char *text; /* or NULL */
    mdl_order_filter_t filter;
    apr_array_header_t *found; /* out: mdl_order_line_t *; none twice */
    int more;                  /* out, for words: whether there may be more */
} mdl_order_search_t;
apr_status_t mdl_order_search(mdl_db_t *db, apr_pool_t *p, mdl_order_search_t *search);

#endif
