#include "api/routes.h"

#include "api/list.h"
#include "core/catalog/license.h"
#include "core/order/find.h"

static apr_status_t search_parse(mdl_request_t *request)
{
    mdl_find_t *find = apr_pcalloc(request->r->pool, sizeof *find);
    mdl_list_t *query = mdl_list_begin(request);

    find->shop_id = request->caller.shop_id;
    find->text = mdl_list_text(query, "q", MDL_LICENSE_KEY_MAX);
    if (request->caller.scope >= MDL_KEY_SCOPE_DELIVER) {
        find->secret = request->service->secret;
    }
    request->arg = find;
    return mdl_list_end_plain(query, &find->limit);
}

MDL_EFFECT(mdl_find, mdl_find_t *)

static void search_write_order(mdl_json_t *to, const mdl_order_line_t *line)
{
    mdl_json_add_string(to, "storefront_order_id", line->storefront_order_id);
    mdl_json_add_string(to, "access_status", mdl_order_access_names[line->access]);
    mdl_json_add_string(to, "storefront_customer_id", line->storefront_customer_id);
    mdl_json_add_string(to, "email", line->email);
    mdl_json_add_time(to, "created_at", line->created_at);
}

static void search_write_customer(mdl_json_t *to, const mdl_customer_t *customer)
{
    mdl_json_add_int(to, "id", customer->id);
    mdl_json_add_string(to, "storefront_customer_id", customer->storefront_customer_id);
    mdl_json_add_string(to, "email", customer->email);
    mdl_json_add_string(to, "first_name", customer->first_name);
    mdl_json_add_string(to, "last_name", customer->last_name);
    mdl_json_add_string(to, "locale", customer->locale);
}

static void search_write_product(mdl_json_t *to, const mdl_find_product_t *product)
{
    mdl_json_add_int(to, "id", product->id);
    mdl_json_add_string(to, "storefront_product_id", product->storefront_product_id);
    mdl_json_add_string(to, "title", product->title);
    mdl_json_add_bool(to, "is_active", product->is_active);
}

static void search_write_file(mdl_json_t *to, const mdl_asset_t *asset)
{
    mdl_json_add_int(to, "id", asset->id);
    mdl_json_add_string(to, "status", mdl_asset_status_names[asset->status]);
    mdl_json_add_string(to, "filename", asset->filename);
    mdl_json_add_string(to, "title", asset->title);
}

static void search_write_key(mdl_json_t *to, const mdl_license_found_t *key)
{
    mdl_json_add_int(to, "id", key->id);
    mdl_json_add_int(to, "license_key_tag_id", key->tag_id);
    mdl_json_add_string(to, "license_key_tag_name", key->tag);
    mdl_json_add_string(to, "status", mdl_license_status_names[key->status]);
    mdl_json_add_string(to, "storefront_order_id", key->storefront_order_id);
}

#define WRITE_ALL(name, found, write, type)                                                        \
    do {                                                                                           \
        mdl_json_t *list = mdl_json_add_array(request->response, name);                            \
                                                                                                   \
        for (int i = 0; i < (found)->nelts; i++) {                                                 \
            write(mdl_json_add_object(list, NULL), APR_ARRAY_IDX(found, i, const type *));         \
        }                                                                                          \
    } while (0)

static void search_write(mdl_request_t *request)
{
    const mdl_find_t *find = request->arg;

    WRITE_ALL("orders", find->orders, search_write_order, mdl_order_line_t);
    WRITE_ALL("customers", find->customers, search_write_customer, mdl_customer_t);
    WRITE_ALL("mappings", find->products, search_write_product, mdl_find_product_t);
    WRITE_ALL("assets", find->files, search_write_file, mdl_asset_t);
    WRITE_ALL("license_keys", find->keys, search_write_key, mdl_license_found_t);
}

const mdl_route_t mdl_search_routes[] = {
    {"GET", "/search", .parse = search_parse, .effect = mdl_find_effect, .write = search_write},
    {0},
};
