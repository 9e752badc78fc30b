#include "api/routes.h"

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "core/identifier.h"
#include "core/catalog/license.h"
#include "core/catalog/license_key.h"
#include "core/catalog/license_pattern.h"

#define MAX_KEYS_BODY (8 * 1024 * 1024)

static const char *license_tag_write_members(mdl_json_t *to, mdl_request_t *request,
                                             const void *entity)
{
    const mdl_license_tag_t *tag = entity;

    mdl_json_add_int(to, "id", tag->id);
    mdl_json_add_string(to, "name", tag->name);
    mdl_json_add_int(to, "available", tag->available);
    mdl_json_add_int(to, "assigned", tag->assigned);
    mdl_json_add_int_if(to, "low_stock_threshold", tag->low_stock_threshold,
                        tag->low_stock_threshold >= 0);
    mdl_json_add_bool(to, "reclaim_on_revoke", tag->reclaims);
    mdl_json_add_time(to, "created_at", tag->created_at);
    mdl_json_add_time(to, "updated_at", tag->updated_at);
    return mdl_resource_id(request, tag->id);
}

static apr_status_t license_tag_parse(mdl_request_t *request, mdl_members_t *members,
                                      mdl_presence_t name)
{
    mdl_license_tag_edit_t *edit = mdl_resource_begin(request, sizeof *edit);

    edit->name = mdl_members_text(members, "name", name, MDL_NAME_MAX);
    edit->set_threshold = mdl_members_given(members, "low_stock_threshold");
    edit->low_stock_threshold = mdl_members_int(members, "low_stock_threshold", MDL_NULLABLE, 0,
                                                MDL_LICENSE_THRESHOLD_MAX, -1);
    edit->reclaims = mdl_members_bool(members, "reclaim_on_revoke", -1);
    return mdl_members_end(members);
}

static apr_status_t license_tag_parse_create(mdl_request_t *request)
{
    return license_tag_parse(request, mdl_members_begin(request, request->body, ""), MDL_REQUIRED);
}

static apr_status_t license_tag_parse_change(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");

    return license_tag_parse(request, members, MDL_OPTIONAL);
}

MDL_EFFECT(mdl_license_tag_page, mdl_list_page_t *)
MDL_EFFECT(mdl_license_tag_create, mdl_license_tag_edit_t *)
MDL_EFFECT(mdl_license_tag_find, mdl_entity_ref_t *)
MDL_EFFECT(mdl_license_tag_change, mdl_license_tag_edit_t *)
MDL_EFFECT(mdl_license_tag_delete, mdl_entity_ref_t *)

static mdl_license_add_t *license_keys_begin(mdl_request_t *request)
{
    mdl_license_add_t *add = mdl_resource_begin(request, sizeof *add);

    add->key_id = request->caller.key_id;
    add->secret = request->service->secret;
    return add;
}

static apr_status_t license_keys_parse_add(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_license_add_t *add = license_keys_begin(request);

    add->keys = mdl_members_texts(members, "keys", MDL_REQUIRED, MDL_LICENSE_KEYS_MAX,
                                  MDL_LICENSE_KEY_MAX, MDL_LICENSE_KEY_MAX_BYTES);
    return mdl_members_end(members);
}

static apr_status_t license_keys_parse_generate(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_license_add_t *add = license_keys_begin(request);

    add->pattern = mdl_members_text(members, "pattern", MDL_REQUIRED, MDL_LICENSE_PATTERN_MAX);
    add->count = (int)mdl_members_int(members, "count", MDL_REQUIRED, 1, MDL_LICENSE_KEYS_MAX, 1);
    return mdl_members_end(members);
}

static void license_keys_write_add(mdl_request_t *request)
{
    const mdl_license_add_t *add = request->arg;

    mdl_json_add_int(request->response, "added", add->added);
    mdl_json_add_int(request->response, "duplicates", add->duplicates);
    mdl_json_add_int(request->response, "handed_out", add->given);
}

MDL_EFFECT(mdl_license_add, mdl_license_add_t *)

static const char *license_key_write_members(mdl_json_t *to, mdl_request_t *request,
                                             const void *entity)
{
    const mdl_license_entry_t *entry = entity;
    apr_array_header_t *sealed = apr_array_make(request->r->pool, 1, sizeof entry->key);
    const apr_array_header_t *opened = NULL;

    if (request->caller.scope >= MDL_KEY_SCOPE_DELIVER) {
        APR_ARRAY_PUSH(sealed, mdl_license_key_t) = entry->key;
        opened = mdl_license_keys_open(request->service->secret, sealed, request->r->pool);
    }
    mdl_json_add_int(to, "id", entry->id);
    mdl_json_add_string(to, "license_key",
                        opened != NULL ? APR_ARRAY_IDX(opened, 0, const char *) : NULL);
    mdl_json_add_string(to, "status", mdl_license_status_names[entry->status]);
    mdl_json_add_int_if(to, "assignment_id", entry->assignment_id, entry->assignment_id != 0);
    mdl_json_add_string(to, "storefront_order_id", entry->storefront_order_id);
    mdl_json_add_time(to, "assigned_at", entry->assigned_at);
    mdl_json_add_time(to, "withdrawn_at", entry->withdrawn_at);
    mdl_json_add_time(to, "created_at", entry->created_at);
    return mdl_resource_id(request, entry->id);
}

static apr_status_t license_keys_parse_page(mdl_request_t *request)
{
    mdl_license_page_t *list = apr_pcalloc(request->r->pool, sizeof *list);
    mdl_list_t *query;

    list->ref = mdl_resource_ref(request);
    request->arg = list;
    query = mdl_list_begin(request);
    list->status = mdl_list_choice(query, "status", mdl_license_status_names);
    return mdl_list_end(query, &list->page);
}

MDL_EFFECT(mdl_license_page, mdl_license_page_t *)

static apr_status_t license_key_parse_delete(mdl_request_t *request)
{
    mdl_license_delete_t *removal = mdl_resource_begin(request, sizeof *removal);

    removal->id = mdl_identifier_parse(request->parameters[1]);
    return mdl_members_none(request);
}

MDL_EFFECT(mdl_license_delete, mdl_license_delete_t *)

const mdl_route_t mdl_license_key_routes[] = {
    {"GET", "/license-key-tags", .write_entity = license_tag_write_members, .parse = mdl_list_parse,
     .effect = mdl_license_tag_page_effect, .write = mdl_list_write},
    {"POST", "/license-key-tags", "license_key_tag", "created", .versioned = 1,
     .write_entity = license_tag_write_members, .parse = license_tag_parse_create,
     .effect = mdl_license_tag_create_effect, .write = mdl_resource_write_created},
    {"GET", "/license-key-tags/{}", .versioned = 1, .write_entity = license_tag_write_members,
     .parse = mdl_resource_parse, .effect = mdl_license_tag_find_effect,
     .write = mdl_resource_write},
    {"PATCH", "/license-key-tags/{}", "license_key_tag", "changed", .versioned = 1,
     .write_entity = license_tag_write_members, .parse = license_tag_parse_change,
     .effect = mdl_license_tag_change_effect, .write = mdl_resource_write},
    {"DELETE", "/license-key-tags/{}", "license_key_tag", "deleted", .versioned = 1,
     .optional_body = 1, .write_entity = license_tag_write_members,
     .parse = mdl_resource_parse_delete, .effect = mdl_license_tag_delete_effect,
     .write = mdl_resource_write_deleted},
    /* values for more keys than allowed, so that a list that is too long is refused as such */
    {"POST", "/license-key-tags/{}/keys", "license_key_tag", "keys_added", .versioned = 1,
     .max_body = MAX_KEYS_BODY, .max_values = 2 * MDL_LICENSE_KEYS_MAX,
     .parse = license_keys_parse_add, .effect = mdl_license_add_effect,
     .write = license_keys_write_add},
    {"POST", "/license-key-tags/{}/generate", "license_key_tag", "keys_added", .versioned = 1,
     .parse = license_keys_parse_generate, .effect = mdl_license_add_effect,
     .write = license_keys_write_add},
    {"GET", "/license-key-tags/{}/keys", .write_entity = license_key_write_members,
     .parse = license_keys_parse_page, .effect = mdl_license_page_effect, .write = mdl_list_write},
    {"DELETE", "/license-key-tags/{}/keys/{}", "license_key_tag", "key_deleted", .versioned = 1,
     .optional_body = 1, .parse = license_key_parse_delete, .effect = mdl_license_delete_effect,
     .write = mdl_resource_write_deleted},
    {0},
};
