#include "api/routes.h"

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "core/catalog/category.h"

static const char *category_write_members(mdl_json_t *to, mdl_request_t *request,
                                          const void *entity)
{
    const mdl_category_t *category = entity;

    mdl_json_add_int(to, "id", category->id);
    mdl_json_add_string(to, "name", category->name);
    mdl_json_add_time(to, "created_at", category->created_at);
    mdl_json_add_time(to, "updated_at", category->updated_at);
    return mdl_resource_id(request, category->id);
}

static apr_status_t category_parse_create(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_category_edit_t *edit = mdl_resource_begin(request, sizeof *edit);

    edit->name = mdl_members_text(members, "name", MDL_REQUIRED, MDL_NAME_MAX);
    return mdl_members_end(members);
}

static apr_status_t category_parse_change(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_category_edit_t *edit = mdl_resource_begin(request, sizeof *edit);

    edit->name = mdl_members_text(members, "name", MDL_OPTIONAL, MDL_NAME_MAX);
    return mdl_members_end(members);
}

MDL_EFFECT(mdl_category_page, mdl_list_page_t *)
MDL_EFFECT(mdl_category_create, mdl_category_edit_t *)
MDL_EFFECT(mdl_category_find, mdl_entity_ref_t *)
MDL_EFFECT(mdl_category_change, mdl_category_edit_t *)
MDL_EFFECT(mdl_category_delete, mdl_entity_ref_t *)

const mdl_route_t mdl_category_routes[] = {
    {"GET", "/categories", .write_entity = category_write_members, .parse = mdl_list_parse,
     .effect = mdl_category_page_effect, .write = mdl_list_write},
    {"POST", "/categories", "category", "created", .versioned = 1,
     .write_entity = category_write_members, .parse = category_parse_create,
     .effect = mdl_category_create_effect, .write = mdl_resource_write_created},
    {"GET", "/categories/{}", .versioned = 1, .write_entity = category_write_members,
     .parse = mdl_resource_parse, .effect = mdl_category_find_effect, .write = mdl_resource_write},
    {"PATCH", "/categories/{}", "category", "changed", .versioned = 1,
     .write_entity = category_write_members, .parse = category_parse_change,
     .effect = mdl_category_change_effect, .write = mdl_resource_write},
    {"DELETE", "/categories/{}", "category", "deleted", .versioned = 1, .optional_body = 1,
     .write_entity = category_write_members, .parse = mdl_resource_parse_delete,
     .effect = mdl_category_delete_effect, .write = mdl_resource_write_deleted},
    {0},
};
