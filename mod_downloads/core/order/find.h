/*
 * One search for everything that a shop has: orders, customers, products, files and license keys.
 */
#ifndef MDL_CORE_ORDER_FIND_H
#define MDL_CORE_ORDER_FIND_H

#include "core/catalog/asset.h"
#include "core/catalog/license_key.h"
#include "core/order/order.h"

/** A product as the search shows it. */
typedef struct {
    apr_int64_t id; /* of the mapping */
    const char *storefront_product_id;
    const char *title; /* or NULL */
    int is_active;
} mdl_find_product_t;

/** Effect: finds what has all words of a text, or words that begin with them (core/search_word.h),
    and license keys that are the text. */
typedef struct {
    apr_int64_t shop_id;
    const char *text;              /* NULL, or without a word: nothing is found */
    int limit;                     /* of each kind */
    const mdl_secret_t *secret;    /* NULL: no license keys are looked for */
    apr_array_header_t *orders;    /* out: mdl_order_line_t *; those of the customers come last */
    apr_array_header_t *customers; /* out: mdl_customer_t * */
    apr_array_header_t *products;  /* out: mdl_find_product_t * */
    apr_array_header_t *files;     /* out: mdl_asset_t * */
    apr_array_header_t *keys;      /* out: mdl_license_found_t * */
} mdl_find_t;
apr_status_t mdl_find(mdl_db_t *db, apr_pool_t *p, mdl_find_t *find);

#endif
