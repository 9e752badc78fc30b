/*
 * The timeline of an order: who did what to it, when and why.  Entries are added in the
 * transaction that they record, and are never changed.
 */
#ifndef MDL_CORE_ORDER_TIMELINE_H
#define MDL_CORE_ORDER_TIMELINE_H

#include <apr_tables.h>

#include "base/text/json.h"
#include "core/problem.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    const char *action;         /* "assigned", "revoked", … */
    const char *assignment_ids; /* a JSON array as text; NULL: the whole order */
    const char *key_id;         /* the API key that asked, or NULL */
    const char *key_name;       /* its name, when read */
    const char *user;           /* the member who acted; key_id and user NULL: the service itself */
    const char *reason;         /* as the caller gave it, or NULL */
    const char *details;        /* a JSON object as text, or NULL */
    apr_time_t created_at;      /* set by mdl_timeline_add */
    int order_is_new;           /* whether this transaction made the order */
} mdl_timeline_entry_t;

/** Which state of an order a person saw on a page. */
typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    apr_int64_t entry_id; /* the newest one */
} mdl_timeline_seen_t;

/** Moves an order's updated_at, for a visible change that has no timeline entry. */
apr_status_t mdl_timeline_touch(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p);

/** Adds an entry, and moves the order's updated_at. */
apr_status_t mdl_timeline_add(mdl_db_t *db, apr_int64_t order_id, mdl_timeline_entry_t *entry,
                              apr_pool_t *p);

/** Asks for the newest entries of an order with lower ids than before. */
apr_status_t mdl_timeline_ask_list(mdl_db_t *db, apr_int64_t order_id, apr_int64_t before,
                                   int limit, mdl_rows_t **rows, apr_pool_t *p);

/** Reads them: mdl_timeline_entry_t *, newest first. */
apr_array_header_t *mdl_timeline_read_all(mdl_rows_t *rows, apr_pool_t *p);

/** Counts an order's entries with an action since a time; *oldest gets the time of the first. */
apr_status_t mdl_timeline_count(mdl_db_t *db, apr_int64_t order_id, const char *action,
                                apr_time_t since, int *count, apr_time_t *oldest, apr_pool_t *p);

/**
 * Locks an order until the end of the transaction, for a person who acts on what a page showed.
 * Refused: 412 precondition_failed when the order has a newer entry than the person saw (0:
 * anything goes).  An order that does not exist is no error here.  Comparing updated_at would
 * refuse too much: it also moves when an email is sent or bounces.
 */
apr_status_t mdl_timeline_check_seen(mdl_db_t *db, const mdl_timeline_seen_t *seen,
                                     mdl_problem_t *problem, apr_pool_t *p);

#endif
