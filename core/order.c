#include "core/order.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/crypto.h"
#include "core/mapping.h"

#define PAGE_ID_LENGTH 16

static mdl_order_t *order_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_order_t *order = apr_pcalloc(p, sizeof *order);

    order->id = mdl_rows_int(row, 0);
    order->storefront_order_id = mdl_rows_text(row, 1);
    order->page_id = mdl_rows_text(row, 2);
    order->access_status = mdl_rows_text(row, 3);
    order->access_reason = mdl_rows_text(row, 4);
    order->fraud_decision = mdl_rows_text(row, 5);
    order->created_at = mdl_rows_int(row, 6);
    order->customer.id = mdl_rows_int(row, 7);
    order->customer.storefront_customer_id = mdl_rows_text(row, 8);
    order->customer.email = mdl_rows_text(row, 9);
    order->customer.first_name = mdl_rows_text(row, 10);
    order->customer.last_name = mdl_rows_text(row, 11);
    order->customer.locale = mdl_rows_text(row, 12);
    order->shop_id = mdl_rows_int(row, 13);
    order->shop_name = mdl_rows_text(row, 14);
    order->shop_email = mdl_rows_text(row, 15);
    return order;
}

static apr_status_t read_assignments(mdl_db_t *db, mdl_order_t *order, apr_pool_t *p)
{
    int endless = 0;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, MDL_Q_ASSIGNMENTS_OF_ORDER, &rows, p,
                                    MDL_ARGS(mdl_int(order->id)));

    order->assignments = apr_array_make(p, 4, sizeof(mdl_assignment_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_assignment_t *assignment = apr_pcalloc(p, sizeof *assignment);

        assignment->id = mdl_rows_int(rows, 0);
        assignment->storefront_product_id = mdl_rows_text(rows, 1);
        assignment->storefront_variant_id = mdl_rows_text(rows, 2);
        assignment->quantity = (int)mdl_rows_int(rows, 3);
        assignment->status = mdl_rows_text(rows, 4);
        assignment->mapping_id = mdl_rows_int(rows, 5);
        assignment->download_type = mdl_rows_text(rows, 6);
        assignment->expires_at = mdl_rows_int(rows, 7);
        assignment->created_at = mdl_rows_int(rows, 8);
        assignment->files = apr_array_make(p, 4, sizeof(mdl_order_file_t *));
        APR_ARRAY_PUSH(order->assignments, mdl_assignment_t *) = assignment;
        endless |= assignment->expires_at == 0;
        if (assignment->expires_at > order->expires_at) {
            order->expires_at = assignment->expires_at;
        }
    }
    if (endless) {
        order->expires_at = 0;
    }
    return rv;
}

static apr_status_t read_files(mdl_db_t *db, mdl_order_t *order, int default_limit, apr_pool_t *p)
{
    int at = 0;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, MDL_Q_FILES_OF_ORDER, &rows, p,
                                    MDL_ARGS(mdl_int(order->id), mdl_int(order->id)));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_order_file_t *file = apr_pcalloc(p, sizeof *file);
        mdl_assignment_t *assignment;

        file->assignment_id = mdl_rows_int(rows, 0);
        file->asset_id = mdl_rows_int(rows, 1);
        file->filename = mdl_rows_text(rows, 2);
        file->title = mdl_rows_text(rows, 3);
        file->content_type = mdl_rows_text(rows, 4);
        file->status = mdl_rows_text(rows, 5);
        file->sha256 = mdl_rows_text(rows, 6);
        file->size = mdl_rows_int(rows, 7);
        file->downloads_used = (int)mdl_rows_int(rows, 8);
        file->download_limit = mdl_rows_null(rows, 9) ? default_limit : (int)mdl_rows_int(rows, 9);
        if (file->download_limit > 0) {
            file->download_limit += (int)mdl_rows_int(rows, 10);
        }
        file->updated_at = mdl_rows_int(rows, 11);
        /* Both lists are in the order of assignments' ids; one made in between has no place. */
        while (at < order->assignments->nelts &&
               APR_ARRAY_IDX(order->assignments, at, mdl_assignment_t *)->id <
                   file->assignment_id) {
            at++;
        }
        if (at == order->assignments->nelts) {
            break;
        }
        assignment = APR_ARRAY_IDX(order->assignments, at, mdl_assignment_t *);
        if (assignment->id == file->assignment_id) {
            APR_ARRAY_PUSH(assignment->files, mdl_order_file_t *) = file;
        }
    }
    return rv;
}

static apr_status_t select_order(mdl_db_t *db, const mdl_order_find_t *find, mdl_rows_t **row,
                                 apr_pool_t *p)
{
    if (find->page_id != NULL) {
        return mdl_db_select_one(db, MDL_Q_ORDER_BY_PAGE_ID, row, p,
                                 MDL_ARGS(mdl_text(find->page_id)));
    }
    if (find->id != 0) {
        return mdl_db_select_one(db, MDL_Q_ORDER_BY_ID, row, p, MDL_ARGS(mdl_int(find->id)));
    }
    return mdl_db_select_one(db, MDL_Q_ORDER_BY_STOREFRONT_ID, row, p,
                             MDL_ARGS(mdl_int(find->shop_id), mdl_text(find->storefront_order_id)));
}

apr_status_t mdl_order_find(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_order_find_t *find = arg;
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = select_order(db, find, &row, p)) != APR_SUCCESS) {
        return rv;
    }
    find->order = order_of_row(row, p);
    if ((rv = read_assignments(db, find->order, p)) != APR_SUCCESS ||
        (rv = read_files(db, find->order, find->default_download_limit, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_email_state(db, find->order->id, &find->order->email, p);
}

/* Finds each item's mapping, or says of every item that has none. */
static apr_status_t match_items(mdl_db_t *db, mdl_order_assign_t *assign,
                                mdl_mapping_match_t *matches, apr_pool_t *p)
{
    int missing = 0;

    for (int i = 0; i < assign->items->nelts; i++) {
        const mdl_order_item_t *item = &APR_ARRAY_IDX(assign->items, i, mdl_order_item_t);
        apr_status_t rv = mdl_mapping_match(db, assign->shop_id, item->storefront_product_id,
                                            item->storefront_variant_id, &matches[i], p);

        if (rv == APR_ENOENT) {
            missing = 1;
            mdl_refusal_detail(assign->refusal,
                               apr_psprintf(p, "/items/%d/storefront_product_id", i),
                               "product_not_mapped", "No active mapping serves this product.", p);
        } else if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return missing ? mdl_refuse(assign->refusal, 422, "product_not_mapped",
                                "Map each product to its content before assigning it.")
                   : APR_SUCCESS;
}

static apr_status_t put_customer(mdl_db_t *db, mdl_order_assign_t *assign, apr_time_t now,
                                 apr_pool_t *p)
{
    mdl_customer_t *customer = &assign->customer;
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(db, MDL_Q_CUSTOMER_UPSERT, &row, p,
                           MDL_ARGS(mdl_int(assign->shop_id),
                                    mdl_text(customer->storefront_customer_id),
                                    mdl_text(customer->email), mdl_text(customer->first_name),
                                    mdl_text(customer->last_name), mdl_text(customer->locale),
                                    mdl_int(now), mdl_int(now)));
    if (rv == APR_SUCCESS) {
        customer->id = mdl_rows_int(row, 0);
        customer->email = mdl_rows_text(row, 1);
    }
    return rv;
}

static apr_status_t put_order(mdl_db_t *db, mdl_order_assign_t *assign, apr_time_t now,
                              apr_int64_t *order_id, apr_pool_t *p)
{
    unsigned char page_id[PAGE_ID_LENGTH];
    mdl_rows_t *row;
    apr_status_t rv;

    mdl_random(page_id, sizeof page_id);
    rv = mdl_db_select_one(db, MDL_Q_ORDER_UPSERT, &row, p,
                           MDL_ARGS(mdl_int(assign->shop_id), mdl_text(assign->storefront_order_id),
                                    mdl_int(assign->customer.id),
                                    mdl_text(mdl_base64url(page_id, sizeof page_id, p)),
                                    mdl_int(now), mdl_int(now)));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *order_id = mdl_rows_int(row, 0);
    if (mdl_rows_int(row, 1) != assign->customer.id) {
        mdl_refusal_detail(assign->refusal, "/storefront_customer_id", "other_customer",
                           "The order belongs to another customer.", p);
        return mdl_refuse(assign->refusal, 400, "invalid_request",
                          "The order was assigned to another customer before.");
    }
    if (strcmp(mdl_rows_text(row, 2), "revoked") == 0 ||
        strcmp(mdl_rows_text(row, 2), "rejected") == 0) {
        return mdl_refuse(assign->refusal, 409, "access_revoked",
                          "Access to this order was revoked; restore it first.");
    }
    if (assign->fraud_check) {
        rv = mdl_db_exec(db, MDL_Q_ORDER_FRAUD_PASSED, NULL, p, MDL_ARGS(mdl_int(*order_id)));
    }
    return rv;
}

static apr_status_t put_assignment(mdl_db_t *db, mdl_order_assign_t *assign,
                                   const mdl_order_item_t *item, const mdl_mapping_match_t *match,
                                   apr_int64_t order_id, apr_time_t now, apr_pool_t *p)
{
    apr_time_t expires_at = match->access_days < 0
                                ? 0
                                : now + apr_time_from_sec((apr_time_t)match->access_days * 86400);
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(db, MDL_Q_ASSIGNMENT_INSERT, &row, p,
                           MDL_ARGS(mdl_int(order_id), mdl_text(item->storefront_product_id),
                                    mdl_text(item->storefront_variant_id), mdl_int(item->quantity),
                                    mdl_int(match->id), mdl_text(match->content),
                                    mdl_int_or_null(expires_at), mdl_int(now)));
    if (rv == APR_ENOENT) {
        return APR_SUCCESS; /* it was assigned before */
    }
    if (rv == APR_SUCCESS) {
        assign->created++;
        rv = mdl_db_exec(db, MDL_Q_ASSIGNMENT_PIN_FILES, NULL, p,
                         MDL_ARGS(mdl_int(mdl_rows_int(row, 0))));
    }
    return rv;
}

static apr_status_t queue_email(mdl_db_t *db, mdl_order_assign_t *assign, apr_int64_t order_id,
                                apr_pool_t *p)
{
    const char *to = assign->customer.email;
    mdl_email_state_t last;
    int had_none, had_no_recipient;
    apr_status_t rv;

    if ((rv = mdl_email_state(db, order_id, &last, p)) != APR_SUCCESS) {
        return rv;
    }
    had_none = strcmp(last.status, "not_requested") == 0;
    had_no_recipient = strcmp(last.status, "no_recipient") == 0;
    if (!assign->created && !had_none && !(had_no_recipient && to != NULL)) {
        return APR_SUCCESS;
    }
    return mdl_email_queue(db, assign->shop_id, order_id, to, assign->mail_host, p);
}

apr_status_t mdl_order_assign(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_order_assign_t *assign = arg;
    mdl_mapping_match_t *matches = apr_pcalloc(p,
                                               (apr_size_t)assign->items->nelts * sizeof *matches);
    mdl_order_find_t find = {.default_download_limit = assign->default_download_limit};
    apr_time_t now = apr_time_now();
    apr_status_t rv;

    assign->created = 0;
    if ((rv = match_items(db, assign, matches, p)) != APR_SUCCESS ||
        (rv = put_customer(db, assign, now, p)) != APR_SUCCESS ||
        (rv = put_order(db, assign, now, &find.id, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < assign->items->nelts; i++) {
        rv = put_assignment(db, assign, &APR_ARRAY_IDX(assign->items, i, mdl_order_item_t),
                            &matches[i], find.id, now, p);
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    if (assign->send_email && (rv = queue_email(db, assign, find.id, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_order_find(db, p, &find);
    assign->order = find.order;
    return rv;
}
