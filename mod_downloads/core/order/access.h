/*
 * A shop's decisions about access to an order.  Each effect locks the order, stores what changes,
 * adds one timeline entry if anything changed, and returns the order.
 */
#ifndef MDL_CORE_ORDER_ACCESS_H
#define MDL_CORE_ORDER_ACCESS_H

#include "core/order/order.h"

/* The most that one grant may give. */
#define MDL_GRANT_DOWNLOADS_MAX 1000
#define MDL_GRANT_DAYS_MAX      3650

typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const char *key_id;                       /* the API key that asks; NULL: user asks */
    const char *user;                         /* the member */
    const char *reason;                       /* or NULL */
    const apr_array_header_t *assignment_ids; /* apr_int64_t; NULL: the whole order */
    const apr_array_header_t *versions;       /* as in mdl_entity_ref_t */
    int default_download_limit;
    mdl_order_t *order; /* out */
    mdl_problem_t *problem;
} mdl_access_t;

/*
 * All of these effects refuse with 404 order_not_found, and with 422 unknown_reference for an
 * assignment of another order.
 */

/** Revokes access to the whole order, or only to some of its assignments.  A new reason replaces
    the reason of an order that is already revoked.  License keys go back to the stock if their tag
    reclaims keys; rejecting an order does the same. */
apr_status_t mdl_access_revoke(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/**
 * Restores access to the order and to all or some of its assignments.  An order whose review was
 * never decided goes back to review; otherwise its held emails are queued and its license keys
 * handed out.  Refused: 409 order_held; 409 access_revoked when the order was rejected.
 */
apr_status_t mdl_access_restore(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/** Decide the review of the whole order.  An order that was revoked in the meantime stays revoked.
    Refused: 409 order_not_held. */
apr_status_t mdl_access_approve(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);
apr_status_t mdl_access_reject(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/** Replaces the address of the order's page, whatever the order's state.  The old page and its
    links stop working, and running transfers are cut. */
apr_status_t mdl_access_rotate_link(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/**
 * Effect: adds downloads to the files of assignments, and days to assignments that expire.  With
 * file_ids, only these files get downloads, and only assignments that give one of them get days.
 * Refused: also 422 unknown_reference for a file that none of the assignments gives.
 */
typedef struct {
    mdl_access_t access;
    int downloads;                      /* 0: none */
    int extend_days;                    /* 0: none */
    const apr_array_header_t *file_ids; /* apr_int64_t; NULL: all */
} mdl_access_grant_t;
apr_status_t mdl_access_grant(mdl_db_t *db, apr_pool_t *p, mdl_access_grant_t *grant);

/**
 * Effect: sets the quantity of an assignment, and hands out or takes back license keys to match; 0
 * revokes the assignment, which keeps its quantity.  Refused: 404 order_not_found and
 * assignment_not_found; 409 access_revoked when the order is neither active nor held, or the
 * assignment is revoked; 422 too_many_license_keys.
 */
typedef struct {
    mdl_access_t access; /* of the whole order */
    apr_int64_t assignment_id;
    int quantity;
} mdl_access_quantity_t;
apr_status_t mdl_access_set_quantity(mdl_db_t *db, apr_pool_t *p, mdl_access_quantity_t *change);

/** The assignment with this id, in the order that the effect returned; NULL: none. */
const mdl_assignment_t *mdl_access_assignment(const mdl_access_t *access, apr_int64_t id);

#endif
