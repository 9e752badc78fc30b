#include "api/routes.h"

#include <apr_hash.h>
#include <apr_strings.h>

#include "api/members.h"
#include "api/order_view.h"
#include "base/http/accept_language.h"
#include "base/http/address.h"
#include "base/mail/likely_typo.h"
#include "core/catalog/product.h"
#include "core/identifier.h"
#include "core/order/assignment.h"

/* Joins an order's lines of one product and variant into one item. */
static void item_join(mdl_members_t *members, mdl_order_item_t *item, int quantity, apr_pool_t *p)
{
    item->quantity_given = 1;
    item->quantity += quantity;
    if (item->quantity > MDL_ORDER_QUANTITY_MAX) {
        mdl_members_fault(members, "quantity", "invalid",
                          apr_psprintf(p,
                                       "Together the items of this product and variant have a "
                                       "quantity of more than %d.",
                                       MDL_ORDER_QUANTITY_MAX));
    }
}

/* Product and variant are NULL where they are faulty. */
static mdl_order_item_t assign_parse_item(mdl_members_t *members, int index)
{
    mdl_order_item_t item = {.index = index};

    item.storefront_product_id = mdl_members_product(members, "storefront_product_id");
    item.storefront_variant_id = mdl_members_variant(members, "storefront_variant_id",
                                                     item.storefront_product_id);
    item.title = mdl_members_text(members, "title", MDL_NULLABLE, MDL_PRODUCT_TITLE_MAX);
    item.quantity = (int)mdl_members_int(members, "quantity", MDL_OPTIONAL, 1,
                                         MDL_ORDER_QUANTITY_MAX, 1);
    item.quantity_given = mdl_members_given(members, "quantity");
    if (item.storefront_variant_id == NULL) {
        item.storefront_variant_id = "";
    }
    return item;
}

static apr_array_header_t *assign_parse_items(mdl_request_t *request, mdl_members_t *members)
{
    apr_pool_t *p = request->r->pool;
    const mdl_json_t *array = mdl_members_objects(members, "items", MDL_REQUIRED,
                                                  MDL_ORDER_ITEMS_MAX);
    int count = (int)mdl_json_length(array);
    apr_array_header_t *items = apr_array_make(p, count, sizeof(mdl_order_item_t));
    apr_hash_t *seen = apr_hash_make(p);

    for (int i = 0; i < count; i++) {
        const mdl_json_t *object = mdl_json_element(array, (apr_size_t)i);
        mdl_members_t *each = mdl_members_begin(request, object, apr_psprintf(p, "/items/%d", i));
        mdl_order_item_t item, *before;
        const char *key;

        if (mdl_json_type(object) != MDL_JSON_OBJECT) {
            continue;
        }
        item = assign_parse_item(each, i);
        mdl_members_end(each);
        if (item.storefront_product_id == NULL) {
            continue;
        }
        key = apr_pstrcat(p, item.storefront_product_id, " ", item.storefront_variant_id, NULL);
        if ((before = apr_hash_get(seen, key, APR_HASH_KEY_STRING)) != NULL) {
            item_join(each, before, item.quantity, p);
            continue;
        }
        APR_ARRAY_PUSH(items, mdl_order_item_t) = item;
        apr_hash_set(seen, key, APR_HASH_KEY_STRING,
                     &APR_ARRAY_IDX(items, items->nelts - 1, mdl_order_item_t));
    }
    return items;
}

/* Null clears the stored value. */
static const char *assign_customer_text(mdl_members_t *members, const char *name, apr_size_t max,
                                        mdl_order_assign_t *assign, unsigned member)
{
    const char *text = mdl_members_text(members, name, MDL_NULLABLE, max);

    if (text == NULL && mdl_members_given(members, name)) {
        assign->customer_cleared |= member;
    }
    return text;
}

static void assign_parse_customer(mdl_request_t *request, mdl_members_t *members,
                                  mdl_order_assign_t *assign)
{
    const mdl_json_t *object = mdl_members_object(members, "customer");
    mdl_customer_t *customer = &assign->customer;
    mdl_members_t *each;

    if (object == NULL) {
        return;
    }
    assign->customer_given = 1;
    each = mdl_members_begin(request, object, "/customer");
    customer->email = assign_customer_text(each, "email", 254, assign, MDL_CUSTOMER_EMAIL);
    customer->email = mdl_members_email(each, "email", customer->email);
    customer->first_name = assign_customer_text(each, "first_name", 100, assign,
                                                MDL_CUSTOMER_FIRST_NAME);
    customer->last_name = assign_customer_text(each, "last_name", 100, assign,
                                               MDL_CUSTOMER_LAST_NAME);
    customer->locale = assign_customer_text(each, "locale", 35, assign, MDL_CUSTOMER_LOCALE);
    if (customer->locale != NULL && !mdl_language_tag_valid(customer->locale)) {
        mdl_members_fault(each, "locale", "invalid",
                          "This member must be a language tag like pt-BR.");
    }
    mdl_members_end(each);
}

static const char *assign_parse_client_ip(mdl_request_t *request, mdl_members_t *members)
{
    const char *text = mdl_members_text(members, "client_ip", MDL_NULLABLE, 45);
    const char *address = text != NULL ? mdl_address_text(text, request->r->pool) : NULL;

    if (text != NULL && address == NULL) {
        mdl_members_fault(members, "client_ip", "invalid",
                          "This member must be an IPv4 or IPv6 address.");
    }
    return address;
}

static apr_status_t assign_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_order_assign_t *assign = apr_pcalloc(request->r->pool, sizeof *assign);
    apr_status_t rv;

    assign->shop_id = request->caller.shop_id;
    assign->storefront_order_id = request->parameters[0];
    assign->versions = request->versions;
    assign->must_exist = apr_table_get(request->r->headers_in, "If-Match") != NULL;
    assign->customer.storefront_customer_id = mdl_members_digits(members, "storefront_customer_id",
                                                                 MDL_NULLABLE);
    assign->name = mdl_members_text(members, "name", MDL_NULLABLE, MDL_ORDER_NAME_MAX);
    assign->name_given = mdl_members_given(members, "name");
    assign->items = assign_parse_items(request, members);
    assign->unmapped = mdl_members_choice(members, "unmapped", mdl_unmapped_names,
                                          MDL_UNMAPPED_REFUSE);
    assign->send_email = mdl_members_bool(members, "send_email", 0);
    assign->fraud_check = mdl_members_bool(members, "fraud_check", 0);
    assign->client_ip = assign_parse_client_ip(request, members);
    assign_parse_customer(request, members, assign);
    assign->fraud_rules = request->service->fraud;
    assign->default_download_limit = request->service->settings->download_limit;
    assign->mail_host = mdl_settings_public_host(request->service->settings, request->r->pool);
    assign->key_id = request->caller.key_id;
    assign->problem = &request->problem;
    request->arg = assign;
    rv = mdl_members_end(members);
    if (!mdl_identifier_is_digits(assign->storefront_order_id)) {
        return mdl_problem_set(
            &request->problem, 400, "invalid_request",
            "The order's id in the path must be 1 to 20 decimal digits; a name such as "
            "A-1043 is the member name.");
    }
    return rv;
}

static void assign_write_skipped(mdl_json_t *to, const mdl_order_item_t *item)
{
    mdl_json_add_string(to, "storefront_product_id", item->storefront_product_id);
    mdl_json_add_string(to, "storefront_variant_id",
                        *item->storefront_variant_id != '\0' ? item->storefront_variant_id : NULL);
    mdl_json_add_string(to, "code", "product_not_mapped");
    mdl_json_add_string(to, "message", "No active mapping serves this product.");
}

static void assign_write_typo(const mdl_request_t *request, const char *address)
{
    const char *meant = address != NULL ? mdl_likely_typo(address, request->r->pool) : NULL;
    mdl_json_t *typo;

    if (meant != NULL) {
        typo = mdl_json_add_object(request->response, "likely_typo");
        mdl_json_add_string(typo, "email", address);
        mdl_json_add_string(typo, "suggestion", meant);
    }
}

static void assign_write(mdl_request_t *request)
{
    const mdl_order_assign_t *assign = request->arg;
    mdl_json_t *skipped;

    if (assign->created > 0 || assign->is_new) {
        request->status = 201;
        request->location = apr_pstrcat(request->r->pool, request->root, "/orders/",
                                        assign->storefront_order_id, NULL);
    }
    mdl_order_write(request->response, request, assign->order);
    assign_write_typo(request, assign->order->address);
    if (assign->unmapped != MDL_UNMAPPED_SKIP) {
        return;
    }
    skipped = mdl_json_add_array(request->response, "skipped");
    for (int i = 0; i < assign->skipped->nelts; i++) {
        assign_write_skipped(mdl_json_add_object(skipped, NULL),
                             APR_ARRAY_IDX(assign->skipped, i, const mdl_order_item_t *));
    }
}

MDL_EFFECT(mdl_order_assign, mdl_order_assign_t *)

const mdl_route_t mdl_order_assign_routes[] = {
    {"POST", "/orders/{}/assignments", "order", "assigned", .versioned = 1, .parse = assign_parse,
     .effect = mdl_order_assign_effect, .write = assign_write},
    {0},
};
