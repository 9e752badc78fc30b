/*
 * What a shop decides about the access to an order: each decision locks the order, changes what
 * differs, adds one event when anything did, and gives the order back.
 */
#ifndef MDL_CORE_ORDER_ACCESS_H
#define MDL_CORE_ORDER_ACCESS_H

#include "core/order/order.h"

typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const char *key_id;                       /* the API key that asks */
    const char *reason;                       /* or NULL */
    const apr_array_header_t *assignment_ids; /* apr_int64_t; NULL: the whole order */
    int default_download_limit;
    mdl_order_t *order; /* out */
    mdl_problem_t *problem;
} mdl_access_t;

/*
 * Effects of an mdl_access_t.  Refused, all of them: 404 order_not_found, 422 unknown_reference for
 * an assignment of another order.
 */

/** Takes the access away: from the whole order, or from assignments of an order that stays as it
    is.  The reason of an order that is revoked already is replaced by another one. */
apr_status_t mdl_access_revoke(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/**
 * Gives access back: to the order, which goes back under review if nobody has decided yet, and to
 * all or some of its assignments.  Then what waited goes on: held emails, license keys.
 * Refused: 409 order_held, access_revoked when the order was rejected.
 */
apr_status_t mdl_access_restore(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/** Decides a review, of the whole order; an order that was revoked meanwhile stays so.  Refused:
    409 order_not_held. */
apr_status_t mdl_access_approve(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);
apr_status_t mdl_access_reject(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access);

/**
 * Effect: adds downloads to files of assignments, and days to assignments that expire.  file_ids
 * narrow both down to the assignments that give one of these files.  Refused: 422
 * unknown_reference also for a file that none of the assignments gives.
 */
typedef struct {
    mdl_access_t access;
    int downloads;                      /* 0: none */
    int extend_days;                    /* 0: none */
    const apr_array_header_t *file_ids; /* apr_int64_t; NULL: all */
} mdl_access_grant_t;
apr_status_t mdl_access_grant(mdl_db_t *db, apr_pool_t *p, mdl_access_grant_t *grant);

#endif
