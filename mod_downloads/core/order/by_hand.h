/*
 * An order that the staff of a shop make by hand, of one product.
 */
#ifndef MDL_CORE_ORDER_BY_HAND_H
#define MDL_CORE_ORDER_BY_HAND_H

#include "core/order/assignment.h"

/** How many of a shop's mappings are looked at, the newest. */
#define MDL_BY_HAND_LOOKED 1000

/** A mapping that can be assigned: a product, or one variant of it. */
typedef struct {
    apr_int64_t mapping_id;
    const char *storefront_product_id;
    const char *storefront_variant_id; /* or NULL */
    const char *title;                 /* or NULL */
    const char *variant_title;         /* or NULL */
} mdl_by_hand_choice_t;

/** Effect: finds active mappings by what somebody types: a part of the title of a product, or the
    beginning of its number. */
typedef struct {
    apr_int64_t shop_id;
    const char *text; /* NULL: any */
    int limit;
    apr_array_header_t *found; /* out: mdl_by_hand_choice_t * */
    int more;                  /* out: whether there may be more */
} mdl_by_hand_search_t;
apr_status_t mdl_by_hand_search(mdl_db_t *db, apr_pool_t *p, mdl_by_hand_search_t *search);

/** Makes an item of a shop's mapping: its product and, if it has variants, the first.  APR_ENOENT:
    there is no such mapping.  *is_active may be NULL. */
apr_status_t mdl_by_hand_item(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t mapping_id,
                              mdl_order_item_t *item, int *is_active, apr_pool_t *p);

/**
 * Effect: assigns what a mapping gives to a new order of a guest, as mdl_order_assign does.
 * Sets assign's items and, if it is NULL, its storefront_order_id: 20 digits, the first a 9.
 * Refused: also 422 product_not_mapped for a mapping that is none of the shop's, and 409
 * order_exists.
 */
typedef struct {
    apr_int64_t mapping_id;
    mdl_order_assign_t assign;
    const char *number; /* out: of the order */
} mdl_by_hand_t;
apr_status_t mdl_by_hand_make(mdl_db_t *db, apr_pool_t *p, mdl_by_hand_t *order);

#endif
