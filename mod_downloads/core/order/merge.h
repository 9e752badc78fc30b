/*
 * Merging customers: one stays, and gets the orders of the other, who from then on is followed to
 * the one who stays, by id and by number at the storefront.  A job moves what is left of many
 * orders.
 */
#ifndef MDL_CORE_ORDER_MERGE_H
#define MDL_CORE_ORDER_MERGE_H

#include "core/entity_ref.h"
#include "core/order/buyer.h"
#include "db/db.h"

/** The most customers that one takes in. */
#define MDL_MERGED_MAX 1000

/**
 * Effect: merges the customer ref.id into another; ref.entity is then the one who stays
 * (mdl_customer_t).  Of two who are one already, nothing changes.  Orders keep their addresses, and
 * the one who stays gets what was known of the other alone.  Adds one event.
 * Refused: 404 customer_not_found, 409 customer_merged (into somebody else), customer_is_guest, 412
 * precondition_failed, 422 unknown_reference (of the one who stays), too_many_customers.
 */
typedef struct {
    mdl_entity_ref_t ref;
    apr_int64_t into_id; /* who stays */
} mdl_merge_t;
apr_status_t mdl_customer_merge(mdl_db_t *db, apr_pool_t *p, mdl_merge_t *merge);

/** The next customer of a shop whose orders are to be moved; APR_ENOENT: there is none. */
apr_status_t mdl_merge_next(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t *id, apr_pool_t *p);

/** Moves the next orders of a customer who was merged.  Must be called in a transaction. */
apr_status_t mdl_merge_go_on(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, apr_pool_t *p);

#endif
