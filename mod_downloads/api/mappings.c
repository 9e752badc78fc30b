#include "api/routes.h"

#include <string.h>

#include <apr_strings.h>

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "base/names.h"
#include "core/identifier.h"
#include "core/ids.h"
#include "core/catalog/mapping.h"
#include "core/catalog/product.h"

#define MAX_PRODUCT 255

/* Read members.  One that is left out has its value in old, or its default if old is NULL. */

static apr_array_header_t *mapping_ids(mdl_members_t *members, const char *name,
                                       apr_array_header_t *old)
{
    return old == NULL || mdl_members_given(members, name) ? mdl_members_ids(members, name) : old;
}

static int mapping_number(mdl_members_t *members, const char *name, int min, int max, int old)
{
    return mdl_members_given(members, name)
               ? (int)mdl_members_int(members, name, MDL_NULLABLE, min, max, -1)
               : old;
}

static void mapping_read_product(mdl_members_t *members, const mdl_mapping_t *old,
                                 mdl_mapping_t *mapping)
{
    static const char product[] = "storefront_product_id", variants[] = "storefront_variant_ids";

    mapping->storefront_product_id = old == NULL || mdl_members_given(members, product)
                                         ? mdl_members_product(members, product)
                                         : old->storefront_product_id;
    if (old == NULL || mdl_members_given(members, variants)) {
        mapping->storefront_variant_ids = mdl_members_variants(members, variants,
                                                               mapping->storefront_product_id);
        return;
    }
    mapping->storefront_variant_ids = old->storefront_variant_ids;
    if (mdl_members_given(members, product) && old->storefront_variant_ids->nelts > 0) {
        mdl_members_fault(members, variants, "required",
                          "The mapping is for variants: another product has others.");
    }
}

static const char *mapping_old_title(const mdl_mapping_t *old, const char *variant)
{
    for (int i = 0; old != NULL && i < old->storefront_variant_ids->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(old->storefront_variant_ids, i, const char *), variant) == 0) {
            return APR_ARRAY_IDX(old->variant_titles, i, const char *);
        }
    }
    return NULL;
}

/* Reads the object of the variants' titles.  A variant is named as in storefront_variant_ids. */
static void mapping_read_variant_titles(mdl_request_t *request, mdl_members_t *members,
                                        const mdl_mapping_t *old, mdl_mapping_t *mapping)
{
    static const char name[] = "variant_titles";
    const apr_array_header_t *variants = mapping->storefront_variant_ids;
    int given = mdl_members_given(members, name);
    const mdl_json_t *object = mdl_members_object(members, name);
    mdl_members_t *each = object != NULL
                              ? mdl_members_begin(request, object,
                                                  apr_pstrcat(request->r->pool, "/", name, NULL))
                              : NULL;

    mapping->variant_titles = apr_array_make(request->r->pool, variants->nelts,
                                             sizeof(const char *));
    for (int i = 0; i < variants->nelts; i++) {
        const char *variant = APR_ARRAY_IDX(variants, i, const char *);
        const char *key = each != NULL && !mdl_members_given(each, variant)
                              ? mdl_product_number(variant)
                              : variant;

        APR_ARRAY_PUSH(mapping->variant_titles,
                       const char *) = each != NULL ? mdl_members_text(each, key, MDL_NULLABLE,
                                                                       MDL_PRODUCT_TITLE_MAX)
                                       : given      ? NULL
                                                    : mapping_old_title(old, variant);
    }
    if (each != NULL) {
        mdl_members_end(each);
    }
}

static void mapping_read(mdl_request_t *request, mdl_members_t *members, const mdl_mapping_t *old,
                         mdl_mapping_t *mapping)
{
    const mdl_mapping_t defaults = {.download_type = MDL_DOWNLOAD_ZIP,
                                    .is_active = 1,
                                    .download_limit = -1,
                                    .access_days = -1,
                                    .content = MDL_CONTENT_LIVE};
    const mdl_mapping_t *base = old != NULL ? old : &defaults;

    mapping_read_product(members, old, mapping);
    mapping_read_variant_titles(request, members, old, mapping);
    mapping->title = old == NULL || mdl_members_given(members, "title")
                         ? mdl_members_text(members, "title", MDL_NULLABLE, MDL_PRODUCT_TITLE_MAX)
                         : old->title;
    mapping->note = old == NULL || mdl_members_given(members, "note")
                        ? mdl_members_lines(members, "note", MDL_PRODUCT_NOTE_MAX)
                        : old->note;
    mapping->file_ids = mapping_ids(members, "file_ids", base->file_ids);
    mapping->pack_ids = mapping_ids(members, "pack_ids", base->pack_ids);
    mapping->link_ids = mapping_ids(members, "link_ids", base->link_ids);
    mapping->license_key_tag_ids = mapping_ids(members, "license_key_tag_ids",
                                               base->license_key_tag_ids);
    mapping->download_type = mdl_members_choice(members, "download_type", mdl_download_type_names,
                                                base->download_type);
    mapping->is_active = mdl_members_bool(members, "is_active", base->is_active);
    mapping->download_limit = mapping_number(members, "download_limit", 0,
                                             MDL_PRODUCT_DOWNLOADS_MAX, base->download_limit);
    mapping->access_days = mapping_number(members, "access_days", 0, MDL_PRODUCT_DAYS_MAX,
                                          base->access_days);
    mapping->content = mdl_members_choice(members, "content", mdl_mapping_content_names,
                                          base->content);
    mapping->fresh_downloads = mdl_members_bool(members, "fresh_downloads", base->fresh_downloads);
}

static mdl_mapping_put_t *mapping_begin(mdl_request_t *request)
{
    mdl_mapping_put_t *put = apr_pcalloc(request->r->pool, sizeof *put);

    put->shop_id = request->caller.shop_id;
    put->versions = request->versions;
    put->problem = &request->problem;
    request->arg = put;
    return put;
}

static apr_status_t mapping_parse_put(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");

    mapping_read(request, members, NULL, &mapping_begin(request)->mapping);
    return mdl_members_end(members);
}

static apr_status_t mapping_parse_replace(mdl_request_t *request)
{
    apr_status_t rv = mapping_parse_put(request);

    ((mdl_mapping_put_t *)request->arg)->mapping.id = mdl_identifier_parse(request->parameters[0]);
    return rv;
}

static apr_status_t mapping_parse_list(mdl_request_t *request)
{
    static const char filter[] = "storefront_product_id";
    static const char *const states[] = {"false", "true", NULL};
    mdl_list_t *query = mdl_list_begin(request);
    mdl_mapping_list_t *list = apr_pcalloc(request->r->pool, sizeof *list);
    const char *product = mdl_list_text(query, filter, MAX_PRODUCT);

    if (product != NULL && !mdl_identifier_is_product(product)) {
        mdl_list_fault(query, filter, "invalid",
                       "This parameter must be like gid://platform/Product/123.");
    }
    list->storefront_product_id = product;
    list->is_active = mdl_names_find(states, mdl_list_choice(query, "is_active", states));
    mdl_list_view(query);
    request->arg = list;
    return mdl_list_end(query, &list->page);
}

static void mapping_write_lists(mdl_json_t *to, const mdl_mapping_t *mapping)
{
    mdl_json_t *list = mdl_json_add_array(to, "storefront_variant_ids");
    mdl_json_t *titles = mdl_json_add_object(to, "variant_titles");

    for (int i = 0; i < mapping->storefront_variant_ids->nelts; i++) {
        const char *variant = APR_ARRAY_IDX(mapping->storefront_variant_ids, i, const char *);
        const char *title = APR_ARRAY_IDX(mapping->variant_titles, i, const char *);

        mdl_json_add_string(list, NULL, variant);
        if (title != NULL) {
            mdl_json_add_string(titles, variant, title);
        }
    }
    mdl_ids_add(to, "file_ids", mapping->file_ids);
    mdl_ids_add(to, "pack_ids", mapping->pack_ids);
    mdl_ids_add(to, "link_ids", mapping->link_ids);
    mdl_ids_add(to, "license_key_tag_ids", mapping->license_key_tag_ids);
}

static const char *mapping_write_members(mdl_json_t *to, mdl_request_t *request, const void *entity)
{
    const mdl_mapping_t *mapping = entity;

    mdl_json_add_int(to, "id", mapping->id);
    mdl_json_add_string(to, "storefront_product_id", mapping->storefront_product_id);
    mdl_json_add_string(to, "title", mapping->title);
    if (mapping->storefront_variant_ids != NULL) {
        mdl_json_add_string(to, "note", mapping->note);
        mapping_write_lists(to, mapping);
    }
    mdl_json_add_string(to, "download_type", mdl_download_type_names[mapping->download_type]);
    mdl_json_add_bool(to, "is_active", mapping->is_active);
    mdl_json_add_int_if(to, "download_limit", mapping->download_limit,
                        mapping->download_limit >= 0);
    mdl_json_add_int_if(to, "access_days", mapping->access_days, mapping->access_days >= 0);
    mdl_json_add_string(to, "content", mdl_mapping_content_names[mapping->content]);
    mdl_json_add_bool(to, "fresh_downloads", mapping->fresh_downloads);
    mdl_json_add_time(to, "created_at", mapping->created_at);
    mdl_json_add_time(to, "updated_at", mapping->updated_at);
    return mdl_resource_id(request, mapping->id);
}

static void mapping_write_put(mdl_request_t *request)
{
    const mdl_mapping_put_t *put = request->arg;

    request->entity_id = mapping_write_members(request->response, request, &put->mapping);
    if (put->created) {
        request->status = HTTP_CREATED;
        request->location = apr_pstrcat(request->r->pool, request->root, request->path, "/",
                                        request->entity_id, NULL);
    }
}

MDL_EFFECT(mdl_mapping_list, mdl_mapping_list_t *)
MDL_EFFECT(mdl_mapping_put, mdl_mapping_put_t *)
MDL_EFFECT(mdl_mapping_find, mdl_entity_ref_t *)
MDL_EFFECT(mdl_mapping_replace, mdl_mapping_put_t *)

typedef struct {
    mdl_mapping_put_t put;
    mdl_request_t *request;
} mapping_change_t;

/* The effect reads the members, since those left out keep the values of the locked mapping. */
static apr_status_t mapping_parse_change(mdl_request_t *request)
{
    mapping_change_t *change = apr_pcalloc(request->r->pool, sizeof *change);

    change->put = *mapping_begin(request);
    change->put.mapping.id = mdl_identifier_parse(request->parameters[0]);
    change->request = request;
    request->arg = change;
    return APR_SUCCESS;
}

static apr_status_t mapping_change_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mapping_change_t *change = arg;
    mdl_mapping_put_t *put = &change->put;
    mdl_members_t *members = mdl_members_begin(change->request, change->request->body, "");
    mdl_mapping_t *old;
    apr_status_t rv = mdl_mapping_lock(db, put, &old, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    mapping_read(change->request, members, old, &put->mapping);
    if ((rv = mdl_members_end(members)) != APR_SUCCESS) {
        return rv;
    }
    if (mdl_json_is_empty(change->request->body)) {
        put->mapping = *old;
        return APR_SUCCESS;
    }
    return mdl_mapping_replace(db, p, put);
}

MDL_EFFECT(mdl_mapping_delete, mdl_entity_ref_t *)

const mdl_route_t mdl_mapping_routes[] = {
    {"GET", "/mappings", .write_entity = mapping_write_members, .parse = mapping_parse_list,
     .snapshot = 1, .effect = mdl_mapping_list_effect, .write = mdl_list_write},
    {"POST", "/mappings", "mapping", "saved", .versioned = 1, .parse = mapping_parse_put,
     .effect = mdl_mapping_put_effect, .write = mapping_write_put},
    {"GET", "/mappings/{}", .versioned = 1, .write_entity = mapping_write_members,
     .parse = mdl_resource_parse, .snapshot = 1, .effect = mdl_mapping_find_effect,
     .write = mdl_resource_write},
    {"PUT", "/mappings/{}", "mapping", "saved", .versioned = 1, .parse = mapping_parse_replace,
     .effect = mdl_mapping_replace_effect, .write = mapping_write_put},
    {"PATCH", "/mappings/{}", "mapping", "changed", .versioned = 1, .parse = mapping_parse_change,
     .effect = mapping_change_effect, .write = mapping_write_put},
    {"DELETE", "/mappings/{}", "mapping", "deleted", .versioned = 1, .optional_body = 1,
     .parse = mdl_resource_parse_delete, .effect = mdl_mapping_delete_effect,
     .write = mdl_resource_write_deleted},
    {0},
};
