#include "api/mappings.h"

#include "api/members.h"
#include "core/mapping.h"

static apr_status_t parse(mdl_call_t *call)
{
    static const char *const types[] = {"ZIP", "FILES", NULL};
    static const char *const contents[] = {"live", "pinned", NULL};
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_mapping_put_t *put = apr_pcalloc(call->r->pool, sizeof *put);
    mdl_mapping_t *mapping = &put->mapping;
    apr_status_t rv;

    mapping->storefront_product_id = mdl_members_product(members, "storefront_product_id");
    mapping->storefront_variant_ids = mdl_members_variants(members, "storefront_variant_ids",
                                                           mapping->storefront_product_id);
    mapping->file_ids = mdl_members_ids(members, "file_ids");
    mapping->pack_ids = mdl_members_ids(members, "pack_ids");
    mapping->link_ids = mdl_members_ids(members, "link_ids");
    mapping->license_key_tag_ids = mdl_members_ids(members, "license_key_tag_ids");
    mapping->download_type = mdl_members_choice(members, "download_type", types, "ZIP");
    mapping->is_active = mdl_members_bool(members, "is_active", 1);
    mapping->download_limit = (int)mdl_members_int(members, "download_limit", 0, 1000000, -1);
    mapping->access_days = (int)mdl_members_int(members, "access_days", 1, 36500, -1);
    mapping->content = mdl_members_choice(members, "content", contents, "live");
    rv = mdl_members_end(members);
    put->shop_id = call->caller.shop_id;
    put->refusal = &call->refusal;
    call->arg = put;
    return rv;
}

static void write_number(mdl_json_t *to, const char *name, int value)
{
    if (value < 0) {
        mdl_json_add_null(to, name);
    } else {
        mdl_json_add_int(to, name, value);
    }
}

static void write_mapping(mdl_json_t *to, const mdl_mapping_t *mapping)
{
    mdl_json_t *list;

    mdl_json_add_int(to, "id", mapping->id);
    mdl_json_add_string(to, "storefront_product_id", mapping->storefront_product_id);
    list = mdl_json_add_array(to, "storefront_variant_ids");
    for (int i = 0; i < mapping->storefront_variant_ids->nelts; i++) {
        mdl_json_add_string(list, NULL,
                            APR_ARRAY_IDX(mapping->storefront_variant_ids, i, const char *));
    }
    list = mdl_json_add_array(to, "file_ids");
    for (int i = 0; i < mapping->file_ids->nelts; i++) {
        mdl_json_add_int(list, NULL, APR_ARRAY_IDX(mapping->file_ids, i, apr_int64_t));
    }
    mdl_json_add_array(to, "pack_ids");
    mdl_json_add_array(to, "link_ids");
    mdl_json_add_array(to, "license_key_tag_ids");
    mdl_json_add_string(to, "download_type", mapping->download_type);
    mdl_json_add_bool(to, "is_active", mapping->is_active);
    write_number(to, "download_limit", mapping->download_limit);
    write_number(to, "access_days", mapping->access_days);
    mdl_json_add_string(to, "content", mapping->content);
    mdl_json_add_time(to, "created_at", mapping->created_at);
    mdl_json_add_time(to, "updated_at", mapping->updated_at);
}

static void write_put(mdl_call_t *call)
{
    mdl_mapping_put_t *put = call->arg;

    call->status = put->created ? 201 : 200;
    write_mapping(mdl_json_add_object(call->answer, "mapping"), &put->mapping);
}

const mdl_route_t mdl_route_mapping_put = {
    .method = "POST",
    .path = "/mappings",
    .parse = parse,
    .effect = mdl_mapping_put,
    .write = write_put,
};
