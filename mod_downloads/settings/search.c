#include "settings/pages.h"

#include <string.h>

#include "core/catalog/license.h"
#include "core/catalog/product.h"
#include "core/order/find.h"
#include "settings/frame.h"
#include "settings/orders.h"

#define LINES 20 /* of each kind */

MDL_EFFECT(mdl_find, mdl_find_t *)

static void search_add_customers(mdl_json_t *data, const apr_array_header_t *customers,
                                 apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_add_array(data, "customers");

    for (int i = 0; i < customers->nelts; i++) {
        const mdl_customer_t *each = APR_ARRAY_IDX(customers, i, const mdl_customer_t *);
        mdl_json_t *to = mdl_json_add_object(list, NULL);
        const char *query = each->storefront_customer_id != NULL ? each->storefront_customer_id
                                                                 : each->email; /* of a guest */

        mdl_orders_add_customer(to, each->first_name, each->last_name, each->email,
                                each->storefront_customer_id, p);
        mdl_json_add_string(to, "customer_query",
                            query != NULL ? ap_escape_urlencoded(p, query) : "");
    }
    mdl_json_add_bool(data, "has_customers", customers->nelts > 0);
}

static void search_add_products(mdl_json_t *data, const apr_array_header_t *products, apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_add_array(data, "products");

    for (int i = 0; i < products->nelts; i++) {
        const mdl_find_product_t *each = APR_ARRAY_IDX(products, i, const mdl_find_product_t *);
        mdl_json_t *to = mdl_json_add_object(list, NULL);

        mdl_product_json(to, each->title, each->storefront_product_id, p);
        mdl_json_add_int(to, "mapping_id", each->id);
    }
    mdl_json_add_bool(data, "has_products", products->nelts > 0);
}

static void search_add_files(mdl_json_t *data, const apr_array_header_t *files)
{
    mdl_json_t *list = mdl_json_add_array(data, "files");

    for (int i = 0; i < files->nelts; i++) {
        const mdl_asset_t *each = APR_ARRAY_IDX(files, i, const mdl_asset_t *);
        mdl_json_t *to = mdl_json_add_object(list, NULL);

        mdl_json_add_int(to, "asset_id", each->id);
        mdl_json_add_string(to, "title", each->title);
        mdl_json_add_string(to, "filename", each->filename);
    }
    mdl_json_add_bool(data, "has_files", files->nelts > 0);
}

static void search_add_keys(mdl_json_t *data, const apr_array_header_t *keys)
{
    mdl_json_t *list = mdl_json_add_array(data, "keys");

    for (int i = 0; i < keys->nelts; i++) {
        const mdl_license_found_t *each = APR_ARRAY_IDX(keys, i, const mdl_license_found_t *);
        mdl_json_t *to = mdl_json_add_object(list, NULL);

        mdl_json_add_int(to, "tag_id", each->tag_id);
        mdl_json_add_string(to, "tag_name", each->tag);
        mdl_frame_add_choice(to, mdl_license_status_names, (int)each->status);
        mdl_json_add_string(to, "order_id", each->storefront_order_id);
    }
    mdl_json_add_bool(data, "has_keys", keys->nelts > 0);
}

/* The parameter q is optional. */
static int search_show(mdl_visit_t *visit)
{
    apr_pool_t *p = visit->r->pool;
    mdl_find_t find = {.shop_id = visit->shop->id,
                       .text = mdl_visit_parameter(visit, "q"),
                       .limit = LINES,
                       .secret = visit->role >= MDL_ROLE_STAFF ? visit->service->secret : NULL};
    mdl_json_t *data;
    apr_status_t rv;

    if (find.text != NULL && strlen(find.text) > MDL_LICENSE_KEY_MAX_BYTES) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    if ((rv = mdl_visit_read(visit, mdl_find_effect, &find)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_string(data, "search_text", find.text);
    mdl_orders_add_lines(data, "orders", find.orders, p);
    mdl_json_add_bool(data, "has_orders", find.orders->nelts > 0);
    search_add_customers(data, find.customers, p);
    search_add_products(data, find.products, p);
    search_add_files(data, find.files);
    search_add_keys(data, find.keys);
    mdl_json_add_bool(data, "nothing",
                      find.text != NULL && find.orders->nelts + find.customers->nelts +
                                                   find.products->nelts + find.files->nelts +
                                                   find.keys->nelts ==
                                               0);
    return mdl_frame_send(visit, HTTP_OK, "search.html", data, NULL);
}

const mdl_page_t mdl_search_pages[] = {
    {"{}/search", .sees = MDL_ROLE_READ_ONLY, .get = search_show},
    {0},
};
