#include "core/order/email_log.h"

#include <apr_strings.h>

#include "base/mail/mime.h"
#include "core/order/order.h"

#define LAST_CHARACTER "\xf4\x8f\xbf\xbf" /* U+10FFFF: behind every text that begins alike */

/* A whole address is compared as it is kept: its domain in the xn-- form. */
static const char *log_prefix(const char *address, apr_pool_t *p)
{
    const char *kept = address != NULL ? mdl_mime_address_of(address, p) : NULL;

    return kept != NULL ? kept : address;
}

static const char *log_prefix_end(const char *prefix, apr_pool_t *p)
{
    return prefix != NULL ? apr_pstrcat(p, prefix, LAST_CHARACTER, NULL) : NULL;
}

static apr_status_t log_ask_address(mdl_db_t *db, const mdl_email_log_t *log, const char *address,
                                    mdl_rows_t **rows, apr_pool_t *p)
{
    const char *prefix = log_prefix(address, p);

    return mdl_db_select(db, rows, p,
                         MDL_Q(EMAIL_PAGE_OF_ADDRESS, .shop_id = log->page.shop_id,
                               .prefix = prefix, .prefix_end = log_prefix_end(prefix, p),
                               .before = log->page.before, .fate = log->fate,
                               .limit = log->page.limit));
}

static apr_status_t log_ask_order(mdl_db_t *db, const mdl_email_log_t *log, const char *id,
                                  mdl_rows_t **rows, apr_pool_t *p)
{
    mdl_order_find_t find = {.shop_id = log->page.shop_id, .storefront_order_id = id};
    const char *prefix = log_prefix(log->address, p);
    apr_status_t rv = mdl_order_head(db, p, &find);

    return rv != APR_SUCCESS
               ? rv
               : mdl_db_select(db, rows, p,
                               MDL_Q(EMAIL_PAGE_OF_ORDER, .order_id = find.order->id,
                                     .before = log->page.before, .fate = log->fate,
                                     .prefix = prefix, .prefix_end = log_prefix_end(prefix, p),
                                     .limit = log->page.limit));
}

/* Asks by the index that restricts the emails best; APR_ENOENT: there is no such order. */
static apr_status_t log_ask(mdl_db_t *db, const mdl_email_log_t *log, mdl_rows_t **rows,
                            apr_pool_t *p)
{
    const mdl_list_page_t *page = &log->page;
    apr_status_t rv;

    if (log->text != NULL) {
        rv = log_ask_order(db, log, log->text, rows, p);
        return rv == APR_ENOENT ? log_ask_address(db, log, log->text, rows, p) : rv;
    }
    if (log->storefront_order_id != NULL) {
        return log_ask_order(db, log, log->storefront_order_id, rows, p);
    }
    if (log->address != NULL) {
        return log_ask_address(db, log, log->address, rows, p);
    }
    if (log->fate != NULL) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(EMAIL_PAGE_OF_FATE, .shop_id = page->shop_id, .fate = log->fate,
                                   .before = page->before, .limit = page->limit));
    }
    return mdl_db_select(
        db, rows, p,
        MDL_Q(EMAIL_PAGE, .shop_id = page->shop_id, .before = page->before, .limit = page->limit));
}

apr_status_t mdl_email_log(mdl_db_t *db, apr_pool_t *p, mdl_email_log_t *log)
{
    mdl_rows_t *rows;
    apr_status_t rv = log_ask(db, log, &rows, p);

    log->page.found = apr_array_make(p, 25, sizeof(mdl_email_line_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_email_line_t *line = apr_palloc(p, sizeof *line);

        MDL_READ(rows, email_page, line, id, created_at, storefront_order_id, order_name);
        mdl_email_state_of_row(&line->state, rows, mdl_c_email_page_status);
        line->earlier = MDL_INT(rows, email_page, earlier) != 0;
        APR_ARRAY_PUSH(log->page.found, mdl_email_line_t *) = line;
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}
