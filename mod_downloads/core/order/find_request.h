/*
 * Customers who have lost their email ask for the links of all their orders of a shop.  A request
 * is stored whether its address is known or not, and the background process looks up the orders and
 * sends the email: so nobody learns from an answer, or from its time, who buys at a shop.
 */
#ifndef MDL_CORE_ORDER_FIND_REQUEST_H
#define MDL_CORE_ORDER_FIND_REQUEST_H

#include "base/crypto.h"
#include "core/shop/brand.h"
#include "db/db.h"

#define MDL_FIND_WAITING_MAX   10000 /* requests of a shop */
#define MDL_FIND_EMAILS_MAX    100 /* of a shop within an hour; of an address, over all shops, one */
#define MDL_FIND_ORDERS_MAX    50  /* in an email: the newest */
#define MDL_FIND_CUSTOMERS_MAX 100 /* with the address whose orders are looked at: the newest */

/** Effect: finds a shop by its domain; APR_ENOENT: there is none. */
typedef struct {
    const char *domain;
    apr_int64_t id; /* out, like the rest */
    const char *name;
    const char *email; /* for customers to write to; or NULL */
    mdl_brand_t brand;
    int blocked;
    int full; /* as many requests wait as may */
} mdl_find_shop_t;
apr_status_t mdl_find_shop(mdl_db_t *db, apr_pool_t *p, mdl_find_shop_t *find);

/** The address of the page on which a shop's customers ask. */
const char *mdl_find_url(const char *public_url, const char *domain, apr_pool_t *p);

/** Effect: stores a request, which is due at once.  A repetition within an hour changes nothing. */
typedef struct {
    apr_int64_t shop_id;
    const char *address;
    const mdl_secret_t *secret;
} mdl_find_request_t;
apr_status_t mdl_find_request_add(mdl_db_t *db, apr_pool_t *p, mdl_find_request_t *request);

/** Effect: whether a request is due. */
apr_status_t mdl_find_request_waits(mdl_db_t *db, apr_pool_t *p, int *waits);

/** Effect: looks up the orders of requests that are due, up to limit, and queues the emails.  One
    that is beyond its shop's or its address's hour waits until it is not. */
typedef struct {
    const mdl_secret_t *secret;
    int limit;
    int served; /* out: requests */
} mdl_find_serve_t;
apr_status_t mdl_find_request_serve(mdl_db_t *db, apr_pool_t *p, mdl_find_serve_t *serve);

/** Reads the address that a job sends to; APR_ENOENT when its request is kept no longer. */
apr_status_t mdl_find_request_of_job(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                                     const mdl_secret_t *secret, const char **address,
                                     apr_pool_t *p);

typedef struct {
    const char *page_id;
    const char *called; /* its name, or its number */
    const char *locale; /* the customer's; or NULL */
    apr_time_t created_at;
} mdl_found_order_t;

/** Reads the newest orders (mdl_found_order_t) whose emails go to an address, of any state. */
apr_status_t mdl_find_orders(mdl_db_t *db, apr_int64_t shop_id, const char *address, int limit,
                             apr_array_header_t **orders, apr_pool_t *p);

#endif
