#include "core/order/customer.h"

#include <string.h>

#include <apr_time.h>

#include "base/text/json.h"
#include "core/download/signed_url.h"
#include "core/ids.h"
#include "core/order/change.h"
#include "core/order/order_words.h"
#include "core/shop/event.h"
#include "core/version.h"

apr_status_t mdl_customer_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    mdl_customer_t *customer = apr_pcalloc(p, sizeof *customer);
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(CUSTOMER_BY_ID, .id = ref->id, .shop_id = ref->shop_id));

    if (rv == APR_ENOENT) {
        return mdl_problem_set(ref->problem, 404, "customer_not_found",
                               "There is no such customer.");
    }
    if (rv == APR_SUCCESS) {
        MDL_READ(row, customer, customer, id, storefront_customer_id, email, first_name, last_name,
                 locale, created_at, updated_at);
        ref->id = customer->id;
        ref->entity = customer;
    }
    return rv;
}

apr_status_t mdl_customers_read(mdl_db_t *db, apr_int64_t shop_id, const apr_array_header_t *ids,
                                apr_array_header_t **customers, apr_pool_t *p)
{
    apr_array_header_t *read = apr_array_make(p, ids->nelts, sizeof(mdl_customer_t *));
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(CUSTOMERS_BY_ID, .shop_id = shop_id, .ids = ids));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_customer_t *customer = apr_pcalloc(p, sizeof *customer);

        MDL_READ(rows, customers_by_id, customer, id, storefront_customer_id, email, first_name,
                 last_name, locale);
        APR_ARRAY_PUSH(read, mdl_customer_t *) = customer;
    }
    *customers = mdl_ids_sort(ids, read, p);
    return rv;
}

apr_status_t mdl_customer_search(mdl_db_t *db, apr_pool_t *p, mdl_customer_search_t *search)
{
    const mdl_search_query_t *query = search->text != NULL ? mdl_search_query(search->text, p)
                                                           : NULL;
    mdl_rows_t *rows;
    apr_status_t rv;

    search->found = apr_array_make(p, 0, sizeof(mdl_customer_t *));
    if (query == NULL) {
        return APR_SUCCESS;
    }
    rv = mdl_search_ask(db, search->shop_id, MDL_SEARCH_CUSTOMER, query, search->limit, &rows, p);
    return rv == APR_SUCCESS
               ? mdl_customers_read(db, search->shop_id, mdl_search_read(rows, search->limit, p),
                                    &search->found, p)
               : rv;
}

apr_status_t mdl_customer_list(mdl_db_t *db, apr_pool_t *p, mdl_customer_list_t *list)
{
    mdl_list_page_t *page = &list->page;
    mdl_rows_t *rows;
    apr_status_t rv = list->email != NULL
                          ? mdl_db_select(db, &rows, p,
                                          MDL_Q(CUSTOMERS_WITH_EMAIL, .shop_id = page->shop_id,
                                                .email = list->email, .limit = page->limit))
                          : mdl_db_select(db, &rows, p,
                                          MDL_Q(CUSTOMERS_OF_SHOP, .shop_id = page->shop_id,
                                                .limit = page->limit));

    page->found = apr_array_make(p, 8, sizeof(mdl_customer_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_customer_t *customer = apr_pcalloc(p, sizeof *customer);

        MDL_READ(rows, customer, customer, id, storefront_customer_id, email, first_name, last_name,
                 locale, created_at, updated_at);
        APR_ARRAY_PUSH(page->found, mdl_customer_t *) = customer;
    }
    return rv;
}

apr_status_t mdl_customer_orders(mdl_db_t *db, apr_int64_t id, int limit, apr_array_header_t **ids,
                                 apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(CUSTOMER_ORDERS, .customer_id = id, .limit = limit));

    *ids = apr_array_make(p, 8, sizeof(apr_int64_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*ids, apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return rv;
}

/* Locks the customer before its orders, as an assignment does. */
static apr_status_t customer_lock(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(CUSTOMER_LOCK, .id = ref->id, .shop_id = ref->shop_id));

    if ((rv != APR_SUCCESS && rv != APR_ENOENT) ||
        (rv = mdl_customer_find(db, p, ref)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_version_check(ref->versions, ((const mdl_customer_t *)ref->entity)->updated_at,
                             ref->problem);
}

/* The orders that follow the address if it moves, and those that do if they are cleared. */
static apr_status_t customer_lock_orders(mdl_db_t *db, const mdl_customer_change_t *change,
                                         int moves, apr_array_header_t **ids, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(CUSTOMER_ORDERS_LOCK, .customer_id = change->ref.id,
                                          .limit = MDL_CUSTOMER_ORDERS_MAX));

    *ids = apr_array_make(p, 4, sizeof(apr_int64_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        if (MDL_INT(rows, customer_orders_lock, follows) ? moves : change->clear_recipients) {
            APR_ARRAY_PUSH(*ids, apr_int64_t) = MDL_INT(rows, customer_orders_lock, id);
        }
    }
    return rv;
}

static apr_status_t customer_rotate_links(mdl_db_t *db, const apr_array_header_t *orders,
                                          apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; rv == APR_SUCCESS && i < orders->nelts; i++) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(ORDER_REPLACE_PAGE, .page_id = mdl_signed_url_new_page_id(p),
                               .now = apr_time_now(), .id = APR_ARRAY_IDX(orders, i, apr_int64_t)));
    }
    return rv;
}

/* Has orders of the customer follow its new address. */
static apr_status_t customer_move_orders(mdl_db_t *db, const mdl_customer_change_t *change,
                                         const char *before, const apr_array_header_t *orders,
                                         apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    apr_status_t rv = mdl_db_exec(db, NULL, p,
                                  MDL_Q(CUSTOMER_ORDERS_FOLLOW, .now = now, .ids = orders));

    if (rv != APR_SUCCESS ||
        (change->rotate_links && (rv = customer_rotate_links(db, orders, p)) != APR_SUCCESS) ||
        (rv = mdl_email_redirect(db, change->ref.shop_id, orders, change->email, p)) !=
            APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(
        db, NULL, p,
        MDL_Q(TIMELINE_INSERT_ALL, .action = "address_changed", .key_id = change->key_id,
              .user_name = change->user, .reason = change->reason,
              .details = mdl_order_address_details(before, change->email, change->rotate_links, p),
              .created_at = now, .ids = orders));
}

static apr_status_t customer_notify(mdl_db_t *db, const mdl_customer_change_t *change,
                                    apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {.shop_id = change->ref.shop_id,
                         .type = MDL_EVENT_CUSTOMER_ADDRESS_CHANGED};

    mdl_json_add_int(data, "customer_id", change->ref.id);
    event.data = mdl_json_text(data, NULL, p);
    return mdl_event_add(db, &event, p);
}

apr_status_t mdl_customer_change(mdl_db_t *db, apr_pool_t *p, mdl_customer_change_t *change)
{
    apr_array_header_t *orders;
    const char *before;
    int moves;
    apr_status_t rv = customer_lock(db, &change->ref, p);

    if (rv != APR_SUCCESS || change->email == NULL) {
        return rv;
    }
    before = ((const mdl_customer_t *)change->ref.entity)->email;
    moves = before == NULL || strcmp(before, change->email) != 0;
    if ((rv = customer_lock_orders(db, change, moves, &orders, p)) != APR_SUCCESS ||
        (!moves && orders->nelts == 0)) {
        return rv;
    }
    if ((rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(CUSTOMER_SET_EMAIL, .email = change->email, .now = apr_time_now(),
                                .id = change->ref.id))) != APR_SUCCESS ||
        (rv = mdl_customer_store_words(db, change->ref.id, p)) != APR_SUCCESS ||
        (rv = customer_move_orders(db, change, before, orders, p)) != APR_SUCCESS ||
        (rv = customer_notify(db, change, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_customer_find(db, p, &change->ref);
}
