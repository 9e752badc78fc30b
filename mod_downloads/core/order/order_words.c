#include "core/order/order_words.h"

void mdl_order_words(mdl_search_words_t *words, apr_int64_t id, const char *storefront_order_id,
                     const char *name, const char *address, apr_pool_t *p)
{
    mdl_search_add(words, MDL_SEARCH_ORDER, id, storefront_order_id, p);
    mdl_search_add(words, MDL_SEARCH_ORDER, id, name, p);
    mdl_search_add(words, MDL_SEARCH_ORDER, id, address, p);
}

apr_status_t mdl_order_store_words(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    mdl_search_words_t words;
    mdl_rows_t *row, *had;
    apr_status_t rv;

    if ((rv = mdl_search_ask_words(db, MDL_SEARCH_ORDER, id, &had, p)) != APR_SUCCESS ||
        (rv = mdl_db_select_one(db, &row, p, MDL_Q(ORDER_NAMES, id))) != APR_SUCCESS) {
        return rv;
    }
    words = mdl_search_words(MDL_INT(row, order_names, shop_id), p);
    mdl_order_words(&words, id, MDL_TEXT(row, order_names, storefront_order_id),
                    MDL_TEXT(row, order_names, name), MDL_TEXT(row, order_names, recipient), p);
    return mdl_search_renew(db, &words, had, MDL_SEARCH_ORDER, id, p);
}

void mdl_customer_words(mdl_search_words_t *words, const mdl_customer_t *customer, apr_pool_t *p)
{
    mdl_search_add(words, MDL_SEARCH_CUSTOMER, customer->id, customer->storefront_customer_id, p);
    mdl_search_add(words, MDL_SEARCH_CUSTOMER, customer->id, customer->first_name, p);
    mdl_search_add(words, MDL_SEARCH_CUSTOMER, customer->id, customer->last_name, p);
    mdl_search_add(words, MDL_SEARCH_CUSTOMER, customer->id, customer->email, p);
}

apr_status_t mdl_customer_store_words(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    mdl_customer_t customer = {.id = id};
    mdl_search_words_t words = mdl_search_words(0, p);
    mdl_rows_t *rows, *had;
    apr_status_t rv;

    if ((rv = mdl_search_ask_words(db, MDL_SEARCH_CUSTOMER, id, &had, p)) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &rows, p, MDL_Q(CUSTOMER_NAMES, id))) != APR_SUCCESS) {
        return rv;
    }
    while (mdl_rows_next(rows)) {
        words.shop_id = MDL_INT(rows, customer_names, shop_id);
        MDL_READ(rows, customer_names, &customer, storefront_customer_id, email, first_name,
                 last_name);
        mdl_customer_words(&words, &customer, p);
    }
    return mdl_search_renew(db, &words, had, MDL_SEARCH_CUSTOMER, id, p);
}
