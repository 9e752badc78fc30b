/*
 * The evidence of an order: what was bought, and what was delivered, as far as the service has seen
 * it.  It has no license key, and nothing that opens a page or a download.
 */
#ifndef MDL_CORE_ORDER_EVIDENCE_H
#define MDL_CORE_ORDER_EVIDENCE_H

#include "core/download/session.h"
#include "core/order/order.h"
#include "core/settings/keep.h"

#define MDL_EVIDENCE_MAX 1000 /* of each kind: the newest */

typedef struct {
    apr_array_header_t *rows; /* the newest first */
    int has_more;             /* older ones, which are left out */
    apr_time_t gone_before;   /* older ones are no longer kept; 0: the order is not so old */
} mdl_evidence_list_t;

/** Effect: reads the evidence of an order.  Refused: 404 order_not_found. */
typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const mdl_keep_t *keep;
    int default_download_limit;
    mdl_problem_t *problem;
    apr_time_t made_at;            /* out, like all that follow */
    mdl_order_t *order;            /* as it is now */
    mdl_evidence_list_t events;    /* mdl_timeline_entry_t * */
    mdl_evidence_list_t emails;    /* mdl_email_view_t *; the newest is always kept */
    mdl_evidence_list_t visits;    /* mdl_order_visit_t * */
    mdl_evidence_list_t downloads; /* mdl_session_view_t * */
} mdl_evidence_t;
apr_status_t mdl_evidence(mdl_db_t *db, apr_pool_t *p, mdl_evidence_t *evidence);

/** The SHA-256 of the bytes that a download of a file began with, in p; NULL: it is an archive. */
const char *mdl_evidence_sha256(const mdl_session_view_t *download, apr_pool_t *p);

#endif
