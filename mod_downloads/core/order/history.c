#include "core/order/history.h"

#include "core/download/session.h"
#include "core/order/timeline.h"
#include "core/order/order.h"

static apr_status_t history_find_order(mdl_db_t *db, const mdl_history_t *history,
                                       apr_int64_t *order_id, apr_pool_t *p)
{
    mdl_order_find_t find = {.shop_id = history->page.shop_id,
                             .storefront_order_id = history->storefront_order_id};
    apr_status_t rv = mdl_order_head(db, p, &find);

    if (rv == APR_SUCCESS) {
        *order_id = find.order->id;
    }
    return rv == APR_ENOENT ? mdl_order_refuse_unknown(history->problem) : rv;
}

apr_status_t mdl_history_timeline(mdl_db_t *db, apr_pool_t *p, mdl_history_t *history)
{
    mdl_list_page_t *page = &history->page;
    apr_int64_t order_id = 0;
    mdl_rows_t *rows;
    apr_status_t rv = history_find_order(db, history, &order_id, p);

    if (rv == APR_SUCCESS && (rv = mdl_timeline_ask_list(db, order_id, page->before, page->limit,
                                                         &rows, p)) == APR_SUCCESS) {
        page->found = mdl_timeline_read_all(rows, p);
    }
    return rv;
}

apr_status_t mdl_history_downloads(mdl_db_t *db, apr_pool_t *p, mdl_history_t *history)
{
    mdl_list_page_t *page = &history->page;
    const char *place = page->before != APR_INT64_MAX ? page->before_text : NULL;
    apr_int64_t order_id = 0;
    mdl_rows_t *rows;
    apr_status_t rv = history_find_order(db, history, &order_id, p);

    if (rv == APR_SUCCESS &&
        (rv = mdl_session_ask_list(db, order_id, place, page->limit, &rows, p)) == APR_SUCCESS) {
        page->found = mdl_session_read_list(rows, p);
    }
    return rv;
}

apr_array_header_t *mdl_email_views(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *emails = apr_array_make(p, 8, sizeof(mdl_email_view_t *));

    while (mdl_rows_next(rows)) {
        mdl_email_view_t *email = apr_palloc(p, sizeof *email);

        MDL_READ(rows, emails_of_order, email, id, created_at, response);
        mdl_email_state_of_row(&email->state, rows, mdl_c_emails_of_order_status);
        APR_ARRAY_PUSH(emails, mdl_email_view_t *) = email;
    }
    return emails;
}

apr_status_t mdl_history_emails(mdl_db_t *db, apr_pool_t *p, mdl_history_t *history)
{
    mdl_list_page_t *page = &history->page;
    apr_int64_t order_id = 0;
    mdl_rows_t *rows;
    apr_status_t rv = history_find_order(db, history, &order_id, p);

    if (rv != APR_SUCCESS ||
        (rv = mdl_db_select(db, &rows, p,
                            MDL_Q(EMAILS_OF_ORDER, .order_id = order_id, .before = page->before,
                                  .limit = page->limit))) != APR_SUCCESS) {
        return rv;
    }
    page->found = mdl_email_views(rows, p);
    return APR_SUCCESS;
}
