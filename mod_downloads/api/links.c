#include "api/routes.h"

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "core/catalog/link.h"

static const char *link_write_members(mdl_json_t *to, mdl_request_t *request, const void *entity)
{
    const mdl_link_t *link = entity;

    mdl_json_add_int(to, "id", link->id);
    mdl_json_add_string(to, "title", link->title);
    mdl_json_add_string(to, "url", link->url);
    mdl_json_add_time(to, "created_at", link->created_at);
    mdl_json_add_time(to, "updated_at", link->updated_at);
    return mdl_resource_id(request, link->id);
}

static const char *link_url_of(mdl_members_t *members, mdl_presence_t presence)
{
    const char *url = mdl_members_text(members, "url", presence, MDL_LINK_URL_MAX);

    if (url != NULL && !mdl_link_url_valid(url)) {
        mdl_members_fault(members, "url", "invalid",
                          "This member must be an absolute https URL with a host, without user or "
                          "password, in ASCII.");
    }
    return url;
}

static apr_status_t link_parse_create(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_link_edit_t *edit = mdl_resource_begin(request, sizeof *edit);

    edit->title = mdl_members_text(members, "title", MDL_REQUIRED, MDL_NAME_MAX);
    edit->url = link_url_of(members, MDL_REQUIRED);
    return mdl_members_end(members);
}

static apr_status_t link_parse_change(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_link_edit_t *edit = mdl_resource_begin(request, sizeof *edit);

    edit->title = mdl_members_text(members, "title", MDL_OPTIONAL, MDL_NAME_MAX);
    edit->url = link_url_of(members, MDL_OPTIONAL);
    return mdl_members_end(members);
}

MDL_EFFECT(mdl_link_page, mdl_list_page_t *)
MDL_EFFECT(mdl_link_create, mdl_link_edit_t *)
MDL_EFFECT(mdl_link_find, mdl_entity_ref_t *)
MDL_EFFECT(mdl_link_change, mdl_link_edit_t *)
MDL_EFFECT(mdl_link_delete, mdl_entity_ref_t *)

const mdl_route_t mdl_link_routes[] = {
    {"GET", "/links", .write_entity = link_write_members, .parse = mdl_list_parse,
     .effect = mdl_link_page_effect, .write = mdl_list_write},
    {"POST", "/links", "link", "created", .versioned = 1, .write_entity = link_write_members,
     .parse = link_parse_create, .effect = mdl_link_create_effect,
     .write = mdl_resource_write_created},
    {"GET", "/links/{}", .versioned = 1, .write_entity = link_write_members,
     .parse = mdl_resource_parse, .effect = mdl_link_find_effect, .write = mdl_resource_write},
    {"PATCH", "/links/{}", "link", "changed", .versioned = 1, .write_entity = link_write_members,
     .parse = link_parse_change, .effect = mdl_link_change_effect, .write = mdl_resource_write},
    {"DELETE", "/links/{}", "link", "deleted", .versioned = 1, .optional_body = 1,
     .write_entity = link_write_members, .parse = mdl_resource_parse_delete,
     .effect = mdl_link_delete_effect, .write = mdl_resource_write_deleted},
    {0},
};
