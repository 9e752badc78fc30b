#include "api/mappings.h"

#include <apr_strings.h>

#include "api/list.h"
#include "api/members.h"
#include "core/mapping.h"

#define MAX_PRODUCT 255

static apr_status_t parse_put(mdl_call_t *call)
{
    static const char *const types[] = {"ZIP", "FILES", NULL};
    static const char *const contents[] = {"live", "pinned", NULL};
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_mapping_put_t *put = apr_pcalloc(call->r->pool, sizeof *put);
    mdl_mapping_t *mapping = &put->mapping;

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
    put->shop_id = call->caller.shop_id;
    put->refusal = &call->refusal;
    call->arg = put;
    return mdl_members_end(members);
}

static apr_status_t parse_replace(mdl_call_t *call)
{
    apr_status_t rv = parse_put(call);

    ((mdl_mapping_put_t *)call->arg)->mapping.id = mdl_members_path_id(call->parameters[0]);
    return rv;
}

static apr_status_t parse_get(mdl_call_t *call)
{
    mdl_mapping_find_t *find = apr_pcalloc(call->r->pool, sizeof *find);

    find->shop_id = call->caller.shop_id;
    find->id = mdl_members_path_id(call->parameters[0]);
    find->refusal = &call->refusal;
    call->arg = find;
    return APR_SUCCESS;
}

static apr_status_t parse_delete(mdl_call_t *call)
{
    parse_get(call);
    return mdl_members_none(call);
}

static apr_status_t parse_list(mdl_call_t *call)
{
    static const char filter[] = "storefront_product_id";
    mdl_list_t *list = mdl_list_begin(call);
    mdl_listing_t *listing = apr_palloc(call->r->pool, sizeof *listing);
    const char *product = mdl_list_text(list, filter, MAX_PRODUCT);
    apr_status_t rv;

    if (product != NULL && !mdl_members_is_product(product)) {
        mdl_list_fault(list, filter, "invalid",
                       "This parameter must be like gid://platform/Product/123.");
    }
    rv = mdl_listing_begin(list, listing);
    listing->page.filter = product;
    call->arg = listing;
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

static void write_ids(mdl_json_t *to, const char *name, const apr_array_header_t *ids)
{
    mdl_json_t *list = mdl_json_add_array(to, name);

    for (int i = 0; i < ids->nelts; i++) {
        mdl_json_add_int(list, NULL, APR_ARRAY_IDX(ids, i, apr_int64_t));
    }
}

static void write_members(mdl_json_t *to, const mdl_mapping_t *mapping)
{
    mdl_json_t *list;

    mdl_json_add_int(to, "id", mapping->id);
    mdl_json_add_string(to, "storefront_product_id", mapping->storefront_product_id);
    list = mdl_json_add_array(to, "storefront_variant_ids");
    for (int i = 0; i < mapping->storefront_variant_ids->nelts; i++) {
        mdl_json_add_string(list, NULL,
                            APR_ARRAY_IDX(mapping->storefront_variant_ids, i, const char *));
    }
    write_ids(to, "file_ids", mapping->file_ids);
    write_ids(to, "pack_ids", mapping->pack_ids);
    write_ids(to, "link_ids", mapping->link_ids);
    write_ids(to, "license_key_tag_ids", mapping->license_key_tag_ids);
    mdl_json_add_string(to, "download_type", mapping->download_type);
    mdl_json_add_bool(to, "is_active", mapping->is_active);
    write_number(to, "download_limit", mapping->download_limit);
    write_number(to, "access_days", mapping->access_days);
    mdl_json_add_string(to, "content", mapping->content);
    mdl_json_add_time(to, "created_at", mapping->created_at);
    mdl_json_add_time(to, "updated_at", mapping->updated_at);
}

static const char *id_of(mdl_call_t *call, const mdl_mapping_t *mapping)
{
    return apr_psprintf(call->r->pool, "%" APR_INT64_T_FMT, mapping->id);
}

static void write_put(mdl_call_t *call)
{
    const mdl_mapping_put_t *put = call->arg;

    if (put->created) {
        call->status = HTTP_CREATED;
        call->location = apr_pstrcat(call->r->pool, call->root, "/mappings/",
                                     id_of(call, &put->mapping), NULL);
    }
    write_members(mdl_json_add_object(call->answer, "mapping"), &put->mapping);
}

static void write_one(mdl_call_t *call)
{
    write_members(call->answer, ((const mdl_mapping_find_t *)call->arg)->mapping);
}

static void write_deleted(mdl_call_t *call)
{
    call->status = HTTP_NO_CONTENT;
}

static const char *write_row(mdl_json_t *to, mdl_call_t *call, const void *row)
{
    write_members(to, row);
    return id_of(call, row);
}

static void write_list(mdl_call_t *call)
{
    const mdl_listing_t *listing = call->arg;

    mdl_list_write(listing->list, listing->page.found, write_row);
}

const mdl_route_t mdl_route_mapping_list = {
    .method = "GET",
    .path = "/mappings",
    .parse = parse_list,
    .effect = mdl_mapping_page,
    .write = write_list,
};

const mdl_route_t mdl_route_mapping_put = {
    .method = "POST",
    .path = "/mappings",
    .parse = parse_put,
    .effect = mdl_mapping_put,
    .write = write_put,
};

const mdl_route_t mdl_route_mapping = {
    .method = "GET",
    .path = "/mappings/{}",
    .parse = parse_get,
    .effect = mdl_mapping_find,
    .write = write_one,
};

const mdl_route_t mdl_route_mapping_replace = {
    .method = "PUT",
    .path = "/mappings/{}",
    .parse = parse_replace,
    .effect = mdl_mapping_replace,
    .write = write_put,
};

const mdl_route_t mdl_route_mapping_delete = {
    .method = "DELETE",
    .path = "/mappings/{}",
    .optional_body = 1,
    .parse = parse_delete,
    .effect = mdl_mapping_delete,
    .write = write_deleted,
};
