#include "core/order/search.h"

#include <string.h>

static mdl_order_line_t *line_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_order_line_t *line = apr_pcalloc(p, sizeof *line);

    line->id = mdl_rows_int(row, 0);
    line->storefront_order_id = mdl_rows_text(row, 1);
    line->access = mdl_rows_enum(row, 2, mdl_order_access_names);
    line->created_at = mdl_rows_int(row, 3);
    line->storefront_customer_id = mdl_rows_text(row, 4);
    line->email = mdl_rows_text(row, 5);
    line->first_name = mdl_rows_text(row, 6);
    line->last_name = mdl_rows_text(row, 7);
    line->email_status = mdl_rows_null(row, 8) ? MDL_EMAIL_NOT_REQUESTED
                                               : mdl_rows_enum(row, 8, mdl_email_status_names);
    return line;
}

static int search_has(const mdl_order_search_t *search, apr_int64_t id)
{
    int i = 0;

    while (i < search->found->nelts &&
           APR_ARRAY_IDX(search->found, i, mdl_order_line_t *)->id != id) {
        i++;
    }
    return i < search->found->nelts;
}

/* Adds the rows of a statement, which has one more than the limit if there are others. */
static void search_take(mdl_order_search_t *search, mdl_rows_t *rows, apr_pool_t *p)
{
    int taken = 0;

    while (mdl_rows_next(rows)) {
        mdl_order_line_t *line = line_of_row(rows, p);

        if (taken++ == search->limit) {
            search->more = 1;
        } else if (!search_has(search, line->id)) {
            APR_ARRAY_PUSH(search->found, mdl_order_line_t *) = line;
        }
    }
}

static apr_status_t search_number(mdl_db_t *db, mdl_order_search_t *search, apr_pool_t *p)
{
    mdl_arg_t shop = mdl_int(search->shop_id), text = mdl_text(search->text);
    mdl_arg_t limit = mdl_int(search->limit + 1);
    mdl_rows_t *numbers, *customer;
    apr_status_t rv;

    if ((rv = mdl_db_select(db, MDL_Q_ORDER_LINES_OF_NUMBER, &numbers, p,
                            MDL_ARGS(shop, text, text, limit))) != APR_SUCCESS ||
        (rv = mdl_db_select(db, MDL_Q_ORDER_LINES_OF_CUSTOMER, &customer, p,
                            MDL_ARGS(shop, text, limit))) != APR_SUCCESS) {
        return rv;
    }
    search_take(search, numbers, p);
    search_take(search, customer, p);
    return APR_SUCCESS;
}

apr_status_t mdl_order_search(mdl_db_t *db, apr_pool_t *p, mdl_order_search_t *search)
{
    mdl_arg_t shop = mdl_int(search->shop_id), before = mdl_int(search->before);
    mdl_arg_t limit = mdl_int(search->limit + 1);
    mdl_rows_t *rows;
    apr_status_t rv;

    search->found = apr_array_make(p, search->limit, sizeof(mdl_order_line_t *));
    search->more = 0;
    if (search->text != NULL && strchr(search->text, '@') == NULL) {
        return search_number(db, search, p);
    }
    if (search->text != NULL) {
        rv = mdl_db_select(db, MDL_Q_ORDER_LINES_OF_EMAIL, &rows, p,
                           MDL_ARGS(shop, mdl_text(search->text), limit, limit, limit));
    } else if (search->access != MDL_ORDER_ACTIVE) {
        rv = mdl_db_select(
            db, MDL_Q_ORDER_LINES_OF_STATE, &rows, p,
            MDL_ARGS(shop, mdl_text(mdl_order_access_names[search->access]), before, limit));
    } else {
        rv = mdl_db_select(db, MDL_Q_ORDER_LINES, &rows, p, MDL_ARGS(shop, before, limit));
    }
    if (rv == APR_SUCCESS) {
        search_take(search, rows, p);
    }
    return rv;
}
