/*
 * A shop's decisions about the access to an order.  Each locks the order, changes what differs,
 * adds one entry to its timeline if anything did, and returns the order.
 */
#ifndef MDL_CORE_ORDER_ACCESS_H
#define MDL_CORE_ORDER_ACCESS_H

#include "core/order/order.h"

/* What one grant gives at most. */
#define MDL_GRANT_DOWNLOADS_MAX 1000
#define MDL_GRANT_DAYS_MAX      3650

typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const char *key_id;                       /* the API key that asks; NULL: user does */
    const char *user;                         /* the member */
    const char *reason;                       /* or NULL */
    const apr_array_header_t *assignment_ids; /* apr_int64_t; NULL: the whole order */
    const apr_array_header_t *versions;       /* as in mdl_entity_ref_t */
    int default_download_limit;
    mdl_order_t *order; /* out */
    mdl_problem_t *problem;
} mdl_access_t;

/*
 * All of these effects refuse with 404 order_not_found and, for an assignment of another order, 422
 * unknown_reference.
 */

/** Revokes access to the whole order, or to some assignments while the order stays as it is.  A new
    reason replaces that of an order which is revoked already.  License keys go back to the stock
    where their tag reclaims them; so they do when an order is rejected. */
apr_status_t mdl_access_revoke(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/**
 * Restores access to the order, which returns to review if that was never decided, and to all or
 * some of its assignments.  Then held emails are sent and license keys handed out.
 * Refused: 409 order_held, access_revoked when the order was rejected.
 */
apr_status_t mdl_access_restore(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/** Decide the review of the whole order; an order that was revoked meanwhile stays revoked.
    Refused: 409 order_not_held. */
apr_status_t mdl_access_approve(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);
apr_status_t mdl_access_reject(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/** Replaces the address of the order's page, in every state of the order.  Pages and links of the
    former address lead nowhere from then on, and its transfers are cut. */
apr_status_t mdl_access_rotate_link(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/**
 * Effect: adds downloads to files of assignments, and days to assignments that expire.  file_ids
 * restrict both to the assignments that give one of these files.
 * Refused: 422 unknown_reference also for a file that none of the assignments gives.
 */
typedef struct {
    mdl_access_t access;
    int downloads;                      /* 0: none */
    int extend_days;                    /* 0: none */
    const apr_array_header_t *file_ids; /* apr_int64_t; NULL: all */
} mdl_access_grant_t;
apr_status_t mdl_access_grant(mdl_db_t *db, apr_pool_t *p, mdl_access_grant_t *grant);

/**
 * Effect: sets how many of a product an assignment is for, and hands out or takes back license keys
 * by that; 0 revokes the assignment, which keeps its quantity.  Refused: 404 order_not_found and
 * assignment_not_found; 409 access_revoked when order or assignment is not open, but for review;
 * 422 too_many_license_keys.
 */
typedef struct {
    mdl_access_t access; /* of the whole order */
    apr_int64_t assignment_id;
    int quantity;
} mdl_access_quantity_t;
apr_status_t mdl_access_set_quantity(mdl_db_t *db, apr_pool_t *p, mdl_access_quantity_t *change);

/** The assignment, of the order that the effect has returned. */
const mdl_assignment_t *mdl_access_assignment(const mdl_access_t *access, apr_int64_t id);

#endif
