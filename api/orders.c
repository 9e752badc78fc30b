#include "api/orders.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_uri.h>

#include "api/members.h"
#include "base/mime.h"
#include "core/link.h"
#include "core/order.h"

#define MAX_ITEMS 250

typedef struct {
    mdl_call_t *call;
    mdl_order_find_t find;
} get_t;

static apr_status_t not_found(mdl_call_t *call)
{
    return mdl_refuse(&call->refusal, 404, "order_not_found", "There is no such order.");
}

static apr_status_t parse_get(mdl_call_t *call)
{
    get_t *get = apr_pcalloc(call->r->pool, sizeof *get);

    get->call = call;
    get->find.shop_id = call->caller.shop_id;
    get->find.storefront_order_id = call->parameters[0];
    get->find.default_download_limit = call->service->settings->download_limit;
    call->arg = get;
    return mdl_members_is_digits(call->parameters[0]) ? APR_SUCCESS : not_found(call);
}

static apr_status_t read_order(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    get_t *get = arg;
    apr_status_t rv = mdl_order_find(db, p, &get->find);

    return rv == APR_ENOENT ? not_found(get->call) : rv;
}

static void write_file(mdl_json_t *to, const mdl_order_file_t *file)
{
    mdl_json_add_int(to, "file_id", file->asset_id);
    mdl_json_add_string(to, "filename", file->filename);
    if (file->sha256 != NULL) {
        mdl_json_add_int(to, "size", file->size);
    } else {
        mdl_json_add_null(to, "size");
    }
    mdl_json_add_string(to, "sha256", file->sha256);
    mdl_json_add_string(to, "status", file->status);
    mdl_json_add_int(to, "downloads_used", file->downloads_used);
    mdl_json_add_int(to, "download_limit", file->download_limit);
}

static void write_assignment(mdl_json_t *to, const mdl_assignment_t *assignment)
{
    mdl_json_t *files;

    mdl_json_add_int(to, "id", assignment->id);
    mdl_json_add_string(to, "storefront_product_id", assignment->storefront_product_id);
    mdl_json_add_string(
        to, "storefront_variant_id",
        *assignment->storefront_variant_id != '\0' ? assignment->storefront_variant_id : NULL);
    mdl_json_add_int(to, "quantity", assignment->quantity);
    mdl_json_add_string(to, "status", assignment->status);
    mdl_json_add_int(to, "mapping_id", assignment->mapping_id);
    mdl_json_add_string(to, "download_type", assignment->download_type);
    files = mdl_json_add_array(to, "files");
    for (int i = 0; i < assignment->files->nelts; i++) {
        write_file(mdl_json_add_object(files, NULL),
                   APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *));
    }
    mdl_json_add_array(to, "links");
    mdl_json_add_array(to, "license_keys");
    mdl_json_add_int(to, "license_keys_pending", 0);
}

static void write_email(mdl_json_t *to, const mdl_email_state_t *email)
{
    mdl_json_add_string(to, "status", email->status);
    mdl_json_add_string(to, "to", email->to);
    mdl_json_add_int(to, "attempts", email->attempts);
    mdl_json_add_string(to, "last_error", email->last_error);
    mdl_json_add_time(to, "sent_at", email->sent_at);
}

static void write_order(mdl_json_t *to, mdl_call_t *call, const mdl_order_t *order)
{
    apr_pool_t *p = call->r->pool;
    mdl_json_t *object, *list;

    mdl_json_add_string(to, "storefront_order_id", order->storefront_order_id);
    object = mdl_json_add_object(to, "access");
    mdl_json_add_string(object, "status", order->access_status);
    mdl_json_add_string(object, "reason", order->access_reason);
    mdl_json_add_time(object, "expires_at", order->expires_at);
    object = mdl_json_add_object(to, "customer");
    mdl_json_add_int(object, "id", order->customer.id);
    mdl_json_add_string(object, "storefront_customer_id", order->customer.storefront_customer_id);
    mdl_json_add_string(object, "email", order->customer.email);
    mdl_json_add_string(object, "first_name", order->customer.first_name);
    mdl_json_add_string(object, "last_name", order->customer.last_name);
    list = mdl_json_add_array(to, "assignments");
    for (int i = 0; i < order->assignments->nelts; i++) {
        write_assignment(mdl_json_add_object(list, NULL),
                         APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *));
    }
    object = mdl_json_add_object(to, "fraud");
    mdl_json_add_string(object, "decision", order->fraud_decision);
    mdl_json_add_array(object, "signals");
    write_email(mdl_json_add_object(to, "email"), &order->email);
    mdl_json_add_string(to, "download_page_url",
                        mdl_link_page_url(call->service->secret,
                                          call->service->settings->public_url, order->page_id, p));
    mdl_json_add_time(to, "created_at", order->created_at);
}

static void write_get(mdl_call_t *call)
{
    write_order(call->answer, call, ((get_t *)call->arg)->find.order);
}

const mdl_route_t mdl_route_order = {
    .method = "GET",
    .path = "/orders/{}",
    .parse = parse_get,
    .effect = read_order,
    .write = write_get,
};

/* One order's assignments are few and come whole: the list never has a next page. */
static void write_items(mdl_call_t *call)
{
    const apr_array_header_t *assignments = ((get_t *)call->arg)->find.order->assignments;
    mdl_json_t *list = mdl_json_add_array(call->answer, "data");

    for (int i = assignments->nelts - 1; i >= 0; i--) {
        write_assignment(mdl_json_add_object(list, NULL),
                         APR_ARRAY_IDX(assignments, i, mdl_assignment_t *));
    }
    mdl_json_add_bool(call->answer, "has_more", 0);
    mdl_json_add_null(call->answer, "next_cursor");
}

const mdl_route_t mdl_route_order_items = {
    .method = "GET",
    .path = "/orders/{}/assignments",
    .parse = parse_get,
    .effect = read_order,
    .write = write_items,
};

static apr_array_header_t *parse_items(mdl_call_t *call, mdl_members_t *members)
{
    const mdl_json_t *array = mdl_members_objects(members, "items", MDL_REQUIRED, MAX_ITEMS);
    apr_array_header_t *items = apr_array_make(call->r->pool, 4, sizeof(mdl_order_item_t));
    apr_hash_t *seen = apr_hash_make(call->r->pool);

    for (apr_size_t i = 0; i < mdl_json_length(array); i++) {
        const char *pointer = apr_psprintf(call->r->pool, "/items/%" APR_SIZE_T_FMT, i);
        mdl_members_t *each = mdl_members_begin(call, mdl_json_element(array, i), pointer);
        mdl_order_item_t item;
        const char *key;

        if (mdl_json_type(mdl_json_element(array, i)) != MDL_JSON_OBJECT) {
            continue;
        }
        item.storefront_product_id = mdl_members_product(each, "storefront_product_id");
        item.storefront_variant_id = mdl_members_variant(each, "storefront_variant_id",
                                                         item.storefront_product_id);
        item.quantity = (int)mdl_members_int(each, "quantity", 1, 1000, 1);
        mdl_members_end(each);
        if (item.storefront_variant_id == NULL) {
            item.storefront_variant_id = "";
        }
        if (item.storefront_product_id == NULL) {
            continue;
        }
        key = apr_pstrcat(call->r->pool, item.storefront_product_id, " ",
                          item.storefront_variant_id, NULL);
        if (apr_hash_get(seen, key, APR_HASH_KEY_STRING) != NULL) {
            mdl_members_fault(each, "storefront_product_id", "duplicate",
                              "This product and variant stand in the list already; use quantity.");
        }
        apr_hash_set(seen, key, APR_HASH_KEY_STRING, key);
        APR_ARRAY_PUSH(items, mdl_order_item_t) = item;
    }
    return items;
}

static void parse_customer(mdl_call_t *call, mdl_members_t *members, mdl_customer_t *customer)
{
    const mdl_json_t *object = mdl_members_object(members, "customer");
    mdl_members_t *each;

    if (object == NULL) {
        return;
    }
    each = mdl_members_begin(call, object, "/customer");
    customer->email = mdl_members_text(each, "email", MDL_OPTIONAL, 254);
    if (customer->email != NULL && !mdl_mime_address_valid(customer->email)) {
        mdl_members_fault(each, "email", "invalid", "This member must be an email address.");
    }
    customer->first_name = mdl_members_text(each, "first_name", MDL_OPTIONAL, 100);
    customer->last_name = mdl_members_text(each, "last_name", MDL_OPTIONAL, 100);
    customer->locale = mdl_members_text(each, "locale", MDL_OPTIONAL, 35);
    mdl_members_end(each);
}

static const char *host_of(const char *url, apr_pool_t *p)
{
    apr_uri_t uri;

    return apr_uri_parse(p, url, &uri) == APR_SUCCESS && uri.hostname != NULL ? uri.hostname
                                                                              : "localhost";
}

static apr_status_t parse_assign(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_order_assign_t *assign = apr_pcalloc(call->r->pool, sizeof *assign);
    apr_status_t rv;

    assign->shop_id = call->caller.shop_id;
    assign->storefront_order_id = call->parameters[0];
    assign->customer.storefront_customer_id = mdl_members_digits(members, "storefront_customer_id",
                                                                 MDL_REQUIRED);
    assign->items = parse_items(call, members);
    assign->send_email = mdl_members_bool(members, "send_email", 0);
    assign->fraud_check = mdl_members_bool(members, "fraud_check", 0);
    parse_customer(call, members, &assign->customer);
    assign->default_download_limit = call->service->settings->download_limit;
    assign->mail_host = host_of(call->service->settings->public_url, call->r->pool);
    assign->refusal = &call->refusal;
    call->arg = assign;
    rv = mdl_members_end(members);
    if (!mdl_members_is_digits(assign->storefront_order_id)) {
        return mdl_refuse(&call->refusal, 400, "invalid_request",
                          "The order's id in the path must be 1 to 20 decimal digits.");
    }
    return rv;
}

static void write_assign(mdl_call_t *call)
{
    const mdl_order_assign_t *assign = call->arg;

    call->status = assign->created > 0 ? 201 : 200;
    write_order(mdl_json_add_object(call->answer, "order"), call, assign->order);
}

const mdl_route_t mdl_route_order_assign = {
    .method = "POST",
    .path = "/orders/{}/assignments",
    .wakes = 1,
    .parse = parse_assign,
    .effect = mdl_order_assign,
    .write = write_assign,
};
