#include "core/order/email_log.h"

#include <apr_strings.h>

#include "core/order/order.h"

#define LAST_CHARACTER "\xf4\x8f\xbf\xbf" /* U+10FFFF: behind every text that begins alike */

static apr_status_t log_ask_address(mdl_db_t *db, const mdl_email_log_t *log, apr_int64_t limit,
                                    mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(db, rows, p,
                         MDL_Q(EMAIL_PAGE_OF_ADDRESS, .shop_id = log->shop_id, .prefix = log->text,
                               .prefix_end = apr_pstrcat(p, log->text, LAST_CHARACTER, NULL),
                               .before = log->before, .fate = log->fate, .limit = limit));
}

static apr_status_t log_ask_text(mdl_db_t *db, const mdl_email_log_t *log, apr_int64_t limit,
                                 mdl_rows_t **rows, apr_pool_t *p)
{
    mdl_order_find_t find = {.shop_id = log->shop_id, .storefront_order_id = log->text};
    apr_status_t rv = mdl_order_head(db, p, &find);

    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? log_ask_address(db, log, limit, rows, p) : rv;
    }
    return mdl_db_select(db, rows, p,
                         MDL_Q(EMAIL_PAGE_OF_ORDER, .order_id = find.order->id,
                               .before = log->before, .fate = log->fate, .limit = limit));
}

/* Asks by the index that restricts the emails best. */
static apr_status_t log_ask(mdl_db_t *db, const mdl_email_log_t *log, apr_int64_t limit,
                            mdl_rows_t **rows, apr_pool_t *p)
{
    if (log->text != NULL) {
        return log_ask_text(db, log, limit, rows, p);
    }
    if (log->fate != NULL) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(EMAIL_PAGE_OF_FATE, .shop_id = log->shop_id, .fate = log->fate,
                                   .before = log->before, .limit = limit));
    }
    return mdl_db_select(
        db, rows, p,
        MDL_Q(EMAIL_PAGE, .shop_id = log->shop_id, .before = log->before, .limit = limit));
}

apr_status_t mdl_email_log(mdl_db_t *db, apr_pool_t *p, mdl_email_log_t *log)
{
    mdl_rows_t *rows;
    apr_status_t rv = log_ask(db, log, log->limit + 1, &rows, p);

    log->found = apr_array_make(p, log->limit, sizeof(mdl_email_line_t *));
    log->next = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_email_line_t *line;

        if (log->found->nelts == log->limit) {
            log->next = APR_ARRAY_IDX(log->found, log->limit - 1, mdl_email_line_t *)->id;
            return APR_SUCCESS;
        }
        line = apr_palloc(p, sizeof *line);
        MDL_READ(rows, email_page, line, id, created_at, storefront_order_id, order_name);
        mdl_email_state_of_row(&line->state, rows, mdl_c_email_page_status);
        line->earlier = MDL_INT(rows, email_page, earlier) != 0;
        APR_ARRAY_PUSH(log->found, mdl_email_line_t *) = line;
    }
    return rv;
}
