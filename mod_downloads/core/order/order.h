/*
 * An order with what was assigned to it: the customer's right to content.
 */
#ifndef MDL_CORE_ORDER_ORDER_H
#define MDL_CORE_ORDER_ORDER_H

#include "core/catalog/mapping.h"
#include "core/job.h"
#include "core/list_page.h"
#include "core/order/assignment_files.h"
#include "core/order/email.h"
#include "core/order/search.h"
#include "core/order/state.h"
#include "core/problem.h"
#include "platform/risk.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    const char *storefront_customer_id;
    const char *email; /* NULL when not known, like the next three */
    const char *first_name;
    const char *last_name;
    const char *locale;
} mdl_customer_t;

/* The members of a customer that may be unknown, as bits. */
#define MDL_CUSTOMER_EMAIL      1U
#define MDL_CUSTOMER_FIRST_NAME 2U
#define MDL_CUSTOMER_LAST_NAME  4U
#define MDL_CUSTOMER_LOCALE     8U

typedef struct {
    apr_int64_t id;
    const char *storefront_order_id;
    const char *page_id;
    mdl_order_state_t state;
    const char *access_reason; /* or NULL */
    const char *fraud_signals; /* a JSON array of {"code","level","message"}, as text; NULL until
                                  the order is checked */
    mdl_risk_t fraud_level;    /* once it is checked */
    int risk_pending;          /* the storefront has not assessed it yet */
    apr_time_t created_at;
    apr_time_t updated_at; /* moves with whatever of it changes, but downloads; never back */
    apr_time_t expires_at; /* when the last assignment's access ends; 0: never */
    mdl_customer_t customer;
    apr_int64_t shop_id;
    const char *shop_name;
    const char *shop_email; /* where customers write to; or NULL */
    int shop_blocked;
    mdl_email_state_t email;
    apr_array_header_t *assignments; /* mdl_assignment_t *, by ascending id; NULL in a summary */
    apr_int64_t assignment_count;    /* of a summary */
    int files_truncated;             /* whether they have more files than are read */
    int links_truncated;             /* the same of links */
    int license_keys_truncated;      /* and of license keys */
    apr_array_header_t *timeline;    /* mdl_timeline_entry_t *; NULL unless asked for */
    apr_array_header_t *downloads;   /* mdl_session_view_t *; with the timeline */
    int has_lookup; /* whether a job asks, or asked, the storefront; 0 unless wanted */
    mdl_job_status_t lookup_status;
    const char *lookup_error; /* why it failed, or NULL */
    /* Ids of the license-key tags of which keys are still to be handed out, with ", " between them;
       NULL: none, or not wanted. */
    const char *waiting_tags;
} mdl_order_t;

/** Names the order of an effect, in exactly one way. */
typedef struct {
    apr_int64_t shop_id; /* with storefront_order_id */
    const char *storefront_order_id;
    const char *page_id;
    apr_int64_t id;
    int default_download_limit;
    int with_timeline; /* and downloads */
    int with_lookup;   /* and waiting_tags */
    mdl_order_t *made; /* the order, if this transaction has made it: with its email and its
                          assignments, of which only what they give is read; or NULL */
    const apr_array_header_t *versions; /* for mdl_order_lock, as in mdl_entity_ref_t */
    mdl_order_t *order;                 /* out */
} mdl_order_find_t;

/** An order without assignments and email. */
mdl_order_t *mdl_order_make(apr_pool_t *p);

/** Effect that reads an order with everything in it, but no more than the first MDL_ORDER_FILES_MAX
    of its files (files_truncated), and of links and license keys likewise.  It ends a snapshot
    (db/db.h).  APR_ENOENT when there is none. */
apr_status_t mdl_order_find(mdl_db_t *db, apr_pool_t *p, mdl_order_find_t *find);

/** Effect that reads orders with what they give, by as many statements as one order takes; all of
    them together up to as many files, links and license keys as one order may have. */
typedef struct {
    const apr_array_header_t *ids; /* apr_int64_t, none twice */
    int default_download_limit;
    apr_array_header_t
        *orders; /* out: mdl_order_t *, the newest first, as many as there are or may be read */
} mdl_order_find_all_t;
apr_status_t mdl_order_find_all(mdl_db_t *db, apr_pool_t *p, mdl_order_find_all_t *find);

/** Effect like mdl_order_find, but without assignments, email and what with_timeline and
   with_lookup add. */
apr_status_t mdl_order_head(mdl_db_t *db, apr_pool_t *p, mdl_order_find_t *find);

/** Refuses with 404 order_not_found. */
apr_status_t mdl_order_refuse_unknown(mdl_problem_t *problem);

/**
 * Locks an order of a shop up to the transaction's end and reads it.  Refused: 404 order_not_found,
 * 412 precondition_failed.
 */
apr_status_t mdl_order_lock(mdl_db_t *db, mdl_order_find_t *find, mdl_problem_t *problem,
                            apr_pool_t *p);

/** Effect that reads a page of a shop's orders, with everything in them but timelines: those that
   fit the filter, whose shop and places the page gives.  The page ends before it has more files,
   links or license keys than one order may have.  A summary counts the assignments instead. */
typedef struct {
    mdl_list_page_t page; /* of mdl_order_t */
    mdl_order_filter_t filter;
    int default_download_limit;
} mdl_order_list_t;
apr_status_t mdl_order_list(mdl_db_t *db, apr_pool_t *p, mdl_order_list_t *list);

/** Effect that reads assignments of an order: one of them, or a page, which ends as one of orders
    does.  Refused: 404 order_not_found. */
typedef struct {
    mdl_list_page_t page; /* of mdl_assignment_t */
    const char *storefront_order_id;
    apr_int64_t id; /* that one; 0: a page */
    int default_download_limit;
    mdl_order_t *order; /* out: without assignments and email */
    mdl_problem_t *problem;
} mdl_assignment_list_t;
apr_status_t mdl_assignment_list(mdl_db_t *db, apr_pool_t *p, mdl_assignment_list_t *list);

/** Whether an assignment gives anything at a time, if its order's access is open. */
mdl_entitlement_t mdl_assignment_entitlement(const mdl_assignment_t *assignment, apr_time_t now);
int mdl_assignment_open(const mdl_assignment_t *assignment, apr_time_t now);

/** Whether an order gives anything at a time: REVOKED or EXPIRED also where each of its assignments
    is; EXPIRED if any of them is. */
mdl_entitlement_t mdl_order_entitlement(const mdl_order_t *order, apr_time_t now);

/** Whether any assignment of an order is open. */
int mdl_order_has_open(const mdl_order_t *order, apr_time_t now);

/** Refuses unless the order's access is active: 409 order_held or access_revoked. */
apr_status_t mdl_order_check_active(const mdl_order_t *order, mdl_problem_t *problem);

#endif
