#include "core/order/find.h"

#include "core/ids.h"
#include "core/order/customer.h"
#include "core/search_word.h"

static const mdl_search_kind_t kinds[] = {MDL_SEARCH_ORDER, MDL_SEARCH_CUSTOMER, MDL_SEARCH_PRODUCT,
                                          MDL_SEARCH_FILE};
#define KINDS (sizeof kinds / sizeof *kinds)

/* The ids of what was found, by kind. */
typedef struct {
    apr_array_header_t *orders, *customers, *products, *files;
} found_t;

static apr_status_t found_read(mdl_db_t *db, const mdl_find_t *find, found_t *found, apr_pool_t *p)
{
    const mdl_search_query_t *query = find->text != NULL ? mdl_search_query(find->text, p) : NULL;
    apr_array_header_t **ids[KINDS] = {&found->orders, &found->customers, &found->products,
                                       &found->files};
    mdl_rows_t *rows[KINDS];
    apr_status_t rv = APR_SUCCESS;

    for (apr_size_t i = 0; rv == APR_SUCCESS && query != NULL && i < KINDS; i++) {
        rv = mdl_search_ask(db, find->shop_id, kinds[i], query, find->limit, &rows[i], p);
    }
    for (apr_size_t i = 0; rv == APR_SUCCESS && i < KINDS; i++) {
        *ids[i] = query != NULL ? mdl_search_read(rows[i], find->limit, p)
                                : apr_array_make(p, 0, sizeof(apr_int64_t));
    }
    return rv;
}

/* Adds the newest orders of the customers to the orders. */
static apr_status_t find_orders_of_customers(mdl_db_t *db, const mdl_find_t *find, found_t *found,
                                             apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(ORDERS_OF_CUSTOMERS, .ids = found->customers, .limit = find->limit));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t id = mdl_rows_int(rows, 0);

        if (found->orders->nelts < find->limit && !mdl_ids_has(found->orders, id)) {
            APR_ARRAY_PUSH(found->orders, apr_int64_t) = id;
        }
    }
    return rv;
}

static apr_status_t find_products(mdl_db_t *db, mdl_find_t *find, const apr_array_header_t *ids,
                                  apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(MAPPING_NAMES, .shop_id = find->shop_id, .ids = ids));

    find->products = apr_array_make(p, ids->nelts, sizeof(mdl_find_product_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_find_product_t *product = apr_pcalloc(p, sizeof *product);

        MDL_READ(rows, mapping_names, product, id, storefront_product_id, title, is_active);
        APR_ARRAY_PUSH(find->products, mdl_find_product_t *) = product;
    }
    find->products = mdl_ids_sort(ids, find->products, p);
    return rv;
}

static apr_status_t find_keys(mdl_db_t *db, mdl_find_t *find, apr_pool_t *p)
{
    mdl_license_search_t search = {
        .shop_id = find->shop_id, .secret = find->secret, .text = find->text, .limit = find->limit};
    apr_status_t rv = APR_SUCCESS;

    if (find->secret != NULL && find->text != NULL) {
        rv = mdl_license_search(db, p, &search);
    } else {
        search.found = apr_array_make(p, 0, sizeof(mdl_license_found_t *));
    }
    find->keys = search.found;
    return rv;
}

apr_status_t mdl_find(mdl_db_t *db, apr_pool_t *p, mdl_find_t *find)
{
    found_t found;
    apr_status_t rv;

    if ((rv = found_read(db, find, &found, p)) != APR_SUCCESS ||
        (rv = find_orders_of_customers(db, find, &found, p)) != APR_SUCCESS ||
        (rv = mdl_customers_read(db, find->shop_id, found.customers, &find->customers, p)) !=
            APR_SUCCESS ||
        (rv = find_products(db, find, found.products, p)) != APR_SUCCESS ||
        (rv = mdl_asset_find_all(db, find->shop_id, found.files, &find->files, p)) != APR_SUCCESS ||
        (rv = find_keys(db, find, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_order_lines(db, found.orders, &find->orders, p);
}
