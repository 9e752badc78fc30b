/*
 * An order with what was assigned to it: the customer's right to content.
 */
#ifndef MDL_CORE_ORDER_ORDER_H
#define MDL_CORE_ORDER_ORDER_H

#include "core/shop/brand.h"
#include "core/shop/shop.h"
#include "core/catalog/mapping.h"
#include "core/job.h"
#include "core/list_page.h"
#include "core/order/assignment_files.h"
#include "core/order/buyer.h"
#include "core/order/email.h"
#include "core/order/search.h"
#include "core/order/state.h"
#include "core/problem.h"
#include "platform/risk.h"
#include "db/db.h"

/** A customer's request for help: it is asked, and then granted or refused by the shop, or lapses.
 */
typedef enum {
    MDL_HELP_ASKED,
    MDL_HELP_GRANTED,
    MDL_HELP_REFUSED,
    MDL_HELP_LAPSED
} mdl_help_state_t;
extern const char *const mdl_help_state_names[];

typedef struct {
    mdl_help_state_t state;
    apr_time_t asked_at; /* 0: there was none */
    const char *answer;  /* the shop's to the customer, or NULL */
} mdl_help_t;

typedef struct {
    apr_int64_t id;
    const char *storefront_order_id;
    const char *name; /* as the shop calls it, or NULL */
    const char *page_id;
    mdl_order_state_t state;
    const char *access_reason; /* or NULL */
    int undeclared;            /* whether it gives nothing before its customer's declaration */
    apr_time_t declared_at;    /* 0: never */
    const char *fraud_signals; /* a JSON array of {"code","level","message"}, as text; NULL until
                                  the order is checked */
    mdl_risk_t fraud_level;    /* once it is checked */
    int risk_pending;          /* the storefront has not assessed it yet */
    apr_time_t created_at;
    apr_time_t updated_at; /* moves with every change but downloads; never back */
    apr_time_t expires_at; /* when the last assignment's access ends; 0: never */
    mdl_customer_t customer;
    const char *own_address; /* where its emails go instead of to the customer's address, or NULL */
    const char *address;     /* where its emails go; NULL: no address is known */
    apr_int64_t shop_id;
    const char *shop_name;
    const char *shop_domain;
    const char *shop_email;     /* for customers to write to; or NULL */
    const char *withdrawal_url; /* of the shop, or NULL */
    mdl_shop_help_t shop_help;
    mdl_brand_t brand; /* the shop's */
    int shop_blocked;
    mdl_email_state_t email;
    apr_array_header_t *assignments; /* mdl_assignment_t *, by ascending id; NULL in a summary */
    apr_int64_t assignment_count;    /* only in a summary */
    int visit_known;                 /* whether no row is to be made of this visit of its page */
    mdl_help_t help;                 /* the newest request, if the order was read by its page_id */
    int files_truncated;             /* whether there are more files than were read */
    int links_truncated;             /* the same for links */
    int license_keys_truncated;      /* and license keys */
    apr_array_header_t *timeline;    /* mdl_timeline_entry_t *; NULL unless asked for */
    apr_array_header_t *downloads;   /* mdl_session_view_t *; with the timeline */
    int has_lookup; /* whether the storefront was or is asked; 0 without with_lookup */
    mdl_job_status_t lookup_status;
    const char *lookup_error; /* or NULL */
    /* Ids of the license-key tags whose keys the order still waits for, separated by ", "; NULL:
       none, or without with_lookup. */
    const char *waiting_tags;
} mdl_order_t;

#define MDL_ORDER_NAME_MAX 50 /* characters */

/** What people call an order: its name, or its number. */
const char *mdl_order_called(const mdl_order_t *order);

/** Where the customer withdraws from the contract, which is offered for 14 days; or NULL. */
const char *mdl_order_withdrawal(const mdl_order_t *order, apr_time_t now);

/** Names an order by its id, its page_id, or its shop_id and storefront_order_id. */
typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const char *page_id;
    const char *network; /* with page_id: from which a customer visits the page now, or NULL */
    apr_int64_t id;
    int default_download_limit;
    int with_notes;    /* of the mappings */
    int with_timeline; /* and downloads */
    int with_lookup;   /* and waiting_tags, and whether the files are in objects */
    mdl_order_t *made; /* or NULL: the order, if this transaction has made it, with its email and
                          assignments; only the content of the assignments is read */
    const apr_array_header_t *versions; /* for mdl_order_lock, as in mdl_entity_ref_t */
    mdl_order_t *order;                 /* out */
} mdl_order_find_t;

/** An empty order, without assignments and email. */
mdl_order_t *mdl_order_make(apr_pool_t *p);

/** Effect: reads an order with its content, up to MDL_ORDER_FILES_MAX files (files_truncated) and
    the limits of links and license keys.  Ends a snapshot (db/db.h).  APR_ENOENT: none. */
apr_status_t mdl_order_find(mdl_db_t *db, apr_pool_t *p, mdl_order_find_t *find);

/** Effect: reads orders with their content and notes, by as many statements as for one order.  All
   of them together are read up to the limits of one order. */
typedef struct {
    const apr_array_header_t *ids; /* apr_int64_t, none twice */
    int default_download_limit;
    apr_array_header_t *orders; /* out: mdl_order_t *, newest first, up to the limits */
} mdl_order_find_all_t;
apr_status_t mdl_order_find_all(mdl_db_t *db, apr_pool_t *p, mdl_order_find_all_t *find);

/** Effect: like mdl_order_find, but without assignments and email, and without what with_timeline
    and with_lookup add. */
apr_status_t mdl_order_head(mdl_db_t *db, apr_pool_t *p, mdl_order_find_t *find);

/** Refuses with 404 order_not_found. */
apr_status_t mdl_order_refuse_unknown(mdl_problem_t *problem);

/**
 * Locks an order of a shop until the end of the transaction, and reads it.  Refused: 404
 * order_not_found, 412 precondition_failed.
 */
apr_status_t mdl_order_lock(mdl_db_t *db, mdl_order_find_t *find, mdl_problem_t *problem,
                            apr_pool_t *p);

/** Effect: reads a page of the shop's orders that fit the filter, without timelines.  The page
    gives the filter its shop and limit.  It ends early where its orders together would exceed the
    limits of one order.  A summary has the number of assignments instead of them. */
typedef struct {
    mdl_list_page_t page; /* of mdl_order_t */
    mdl_order_filter_t filter;
    int default_download_limit;
} mdl_order_list_t;
apr_status_t mdl_order_list(mdl_db_t *db, apr_pool_t *p, mdl_order_list_t *list);

/** Effect: reads one assignment of an order, or a page of them, which ends early like a page of
    orders.  Refused: 404 order_not_found. */
typedef struct {
    mdl_list_page_t page; /* of mdl_assignment_t */
    const char *storefront_order_id;
    apr_int64_t id; /* of the one assignment; 0: a page */
    int default_download_limit;
    mdl_order_t *order; /* out: without assignments and email */
    mdl_problem_t *problem;
} mdl_assignment_list_t;
apr_status_t mdl_assignment_list(mdl_db_t *db, apr_pool_t *p, mdl_assignment_list_t *list);

/** Whether an assignment gives anything at this time, provided that its order is active. */
mdl_entitlement_t mdl_assignment_entitlement(const mdl_assignment_t *assignment, apr_time_t now);
int mdl_assignment_open(const mdl_assignment_t *assignment, apr_time_t now);

/** Whether an order gives anything at this time.  If none of its assignments is open: EXPIRED when
    at least one has expired, else REVOKED. */
mdl_entitlement_t mdl_order_entitlement(const mdl_order_t *order, apr_time_t now);

/** Whether any assignment of an order is open. */
int mdl_order_has_open(const mdl_order_t *order, apr_time_t now);

/** Refuses an order that waits for its customer's declaration: 409 declaration_required. */
apr_status_t mdl_order_check_declared(const mdl_order_t *order, mdl_problem_t *problem);

/** Refuses unless the order's access is active: 409 order_held or access_revoked. */
apr_status_t mdl_order_check_active(const mdl_order_t *order, mdl_problem_t *problem);

#endif
