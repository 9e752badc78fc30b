/*
 * The history of an order in pages: its timeline, its downloads and its emails.
 */
#ifndef MDL_CORE_ORDER_HISTORY_H
#define MDL_CORE_ORDER_HISTORY_H

#include "core/list_page.h"
#include "core/order/email.h"
#include "core/problem.h"
#include "db/db.h"

/** An entry of the list of an order's emails. */
typedef struct {
    apr_int64_t id;
    mdl_email_state_t state;
    apr_time_t created_at;
    const char *response; /* what the mail server said when it took the email, or NULL */
} mdl_email_view_t;

/** Reads the rows of emails_of_order: mdl_email_view_t *. */
apr_array_header_t *mdl_email_views(mdl_rows_t *rows, apr_pool_t *p);

/** Effects that read a page of an order's history.  Refused: 404 order_not_found. */
typedef struct {
    mdl_list_page_t page; /* of mdl_timeline_entry_t, mdl_session_view_t or mdl_email_view_t;
                             before_text of downloads is from mdl_session_place */
    const char *storefront_order_id;
    mdl_problem_t *problem;
} mdl_history_t;
apr_status_t mdl_history_timeline(mdl_db_t *db, apr_pool_t *p, mdl_history_t *history);
apr_status_t mdl_history_downloads(mdl_db_t *db, apr_pool_t *p, mdl_history_t *history);
apr_status_t mdl_history_emails(mdl_db_t *db, apr_pool_t *p, mdl_history_t *history);

#endif
