#include "api/routes.h"

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "core/ids.h"
#include "core/catalog/pack.h"

static const char *pack_write_members(mdl_json_t *to, mdl_request_t *request, const void *entity)
{
    const mdl_pack_t *pack = entity;

    mdl_json_add_int(to, "id", pack->id);
    mdl_json_add_string(to, "name", pack->name);
    if (pack->file_ids != NULL) {
        mdl_ids_add(to, "file_ids", pack->file_ids);
    }
    mdl_json_add_time(to, "created_at", pack->created_at);
    mdl_json_add_time(to, "updated_at", pack->updated_at);
    return mdl_resource_id(request, pack->id);
}

static apr_status_t pack_parse_create(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_pack_edit_t *edit = mdl_resource_begin(request, sizeof *edit);

    edit->name = mdl_members_text(members, "name", MDL_REQUIRED, MDL_NAME_MAX);
    edit->file_ids = mdl_members_ids(members, "file_ids");
    return mdl_members_end(members);
}

static apr_status_t pack_parse_change(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_pack_edit_t *edit = mdl_resource_begin(request, sizeof *edit);

    edit->name = mdl_members_text(members, "name", MDL_OPTIONAL, MDL_NAME_MAX);
    edit->file_ids = mdl_members_new_ids(members, "file_ids");
    return mdl_members_end(members);
}

static apr_status_t pack_parse_list(mdl_request_t *request)
{
    mdl_list_t *query = mdl_list_begin(request);

    mdl_list_view(query);
    request->arg = apr_pcalloc(request->r->pool, sizeof(mdl_list_page_t));
    return mdl_list_end(query, request->arg);
}

MDL_EFFECT(mdl_pack_page, mdl_list_page_t *)
MDL_EFFECT(mdl_pack_create, mdl_pack_edit_t *)
MDL_EFFECT(mdl_pack_find, mdl_entity_ref_t *)
MDL_EFFECT(mdl_pack_change, mdl_pack_edit_t *)
MDL_EFFECT(mdl_pack_delete, mdl_entity_ref_t *)

const mdl_route_t mdl_pack_routes[] = {
    {"GET", "/packs", .write_entity = pack_write_members, .parse = pack_parse_list, .snapshot = 1,
     .effect = mdl_pack_page_effect, .write = mdl_list_write},
    {"POST", "/packs", "pack", "created", .versioned = 1, .write_entity = pack_write_members,
     .parse = pack_parse_create, .effect = mdl_pack_create_effect,
     .write = mdl_resource_write_created},
    {"GET", "/packs/{}", .versioned = 1, .write_entity = pack_write_members,
     .parse = mdl_resource_parse, .snapshot = 1, .effect = mdl_pack_find_effect,
     .write = mdl_resource_write},
    {"PATCH", "/packs/{}", "pack", "changed", .versioned = 1, .write_entity = pack_write_members,
     .parse = pack_parse_change, .effect = mdl_pack_change_effect, .write = mdl_resource_write},
    {"DELETE", "/packs/{}", "pack", "deleted", .versioned = 1, .optional_body = 1,
     .write_entity = pack_write_members, .parse = mdl_resource_parse_delete,
     .effect = mdl_pack_delete_effect, .write = mdl_resource_write_deleted},
    {0},
};
