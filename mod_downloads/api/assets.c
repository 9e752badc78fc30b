#include "api/assets.h"

#include <string.h>

#include <apr_strings.h>

#include "api/list.h"
#include "api/resource.h"
#include "api/routes.h"
#include "core/job_source.h"
#include "base/http/media_type.h"
#include "core/identifier.h"

#define SHA256_CHARS "0123456789abcdefABCDEF"

const char *mdl_asset_filename(mdl_members_t *members, mdl_presence_t presence)
{
    const char *name = mdl_members_text(members, "filename", presence, MDL_FILENAME_MAX);

    if (name != NULL && strlen(name) > MDL_FILENAME_MAX) {
        mdl_members_fault(members, "filename", "wrong_length",
                          "This member must have at most 255 bytes.");
        return NULL;
    }
    if (name != NULL && !mdl_asset_filename_valid(name)) {
        mdl_members_fault(members, "filename", "invalid",
                          "This member must be a file's name without a path.");
        return NULL;
    }
    return name;
}

const char *mdl_asset_title(mdl_members_t *members, mdl_presence_t presence)
{
    return mdl_members_text(members, "title", presence, MDL_NAME_MAX);
}

const char *mdl_asset_content_type(mdl_members_t *members, mdl_presence_t presence)
{
    const char *type = mdl_members_text(members, "content_type", presence, MDL_MEDIA_TYPE_MAX);

    if (type != NULL && !mdl_media_type_valid(type)) {
        mdl_members_fault(members, "content_type", "invalid",
                          "This member must be a media type such as video/mp4.");
        return NULL;
    }
    return type;
}

apr_int64_t mdl_asset_category_id(mdl_members_t *members)
{
    return mdl_members_int(members, "category_id", MDL_NULLABLE, 1, MDL_IDENTIFIER_MAX, 0);
}

static int is_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, SHA256_CHARS) == 64;
}

static const char *asset_lower(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, text);

    ap_str_tolower(copy);
    return copy;
}

const char *mdl_asset_sha256(mdl_members_t *members, apr_pool_t *p)
{
    const char *text = mdl_members_text(members, "sha256", MDL_OPTIONAL, 64);

    if (text != NULL && !is_sha256(text)) {
        mdl_members_fault(members, "sha256", "invalid",
                          "This member must be 64 hexadecimal digits.");
        return NULL;
    }
    return text != NULL ? asset_lower(text, p) : NULL;
}

static void asset_write_former(mdl_json_t *to, const mdl_asset_t *asset)
{
    mdl_json_t *former;

    if (asset->former_version == 0) {
        mdl_json_add_null(to, "former");
        return;
    }
    former = mdl_json_add_object(to, "former");
    mdl_json_add_int(former, "version", asset->former_version);
    mdl_json_add_int(former, "size", asset->former_size);
    mdl_json_add_string(former, "sha256", asset->former_sha256);
    mdl_json_add_string(former, "note", asset->former_note);
    mdl_json_add_time(former, "kept_until", asset->former_until);
}

static const char *asset_write_members(mdl_json_t *to, mdl_request_t *request, const void *entity)
{
    const mdl_asset_t *asset = entity;

    mdl_json_add_int(to, "id", asset->id);
    mdl_json_add_string(to, "status", mdl_asset_status_names[asset->status]);
    mdl_json_add_string(to, "filename", asset->filename);
    mdl_json_add_string(to, "title", asset->title);
    mdl_json_add_string(to, "content_type", asset->content_type);
    mdl_json_add_int_if(to, "size", asset->size, asset->sha256 != NULL);
    mdl_json_add_string(to, "sha256", asset->sha256);
    mdl_json_add_int_if(to, "category_id", asset->category_id, asset->category_id != 0);
    mdl_json_add_string(to, "source_url", mdl_source_shown(asset->source_url, request->r->pool));
    mdl_json_add_int(to, "version", asset->version);
    mdl_json_add_string(to, "note", asset->note);
    asset_write_former(to, asset);
    mdl_json_add_time(to, "created_at", asset->created_at);
    mdl_json_add_time(to, "updated_at", asset->updated_at);
    return mdl_resource_id(request, asset->id);
}

void mdl_asset_write(mdl_request_t *request, const mdl_asset_t *asset)
{
    asset_write_members(mdl_json_add_object(request->response, "asset"), request, asset);
}

static apr_status_t asset_parse_list(mdl_request_t *request)
{
    mdl_asset_list_t *list = apr_pcalloc(request->r->pool, sizeof *list);
    mdl_list_t *query = mdl_list_begin(request);
    const char *sha256 = mdl_list_text(query, "sha256", 64);

    list->status = mdl_list_choice(query, "status", mdl_asset_status_names);
    list->category_id = mdl_list_id(query, "category_id");
    list->filename = mdl_list_text(query, "filename", MDL_FILENAME_MAX);
    if (sha256 != NULL && !is_sha256(sha256)) {
        mdl_list_fault(query, "sha256", "invalid", "This parameter must be 64 hexadecimal digits.");
    } else if (sha256 != NULL) {
        list->sha256 = asset_lower(sha256, request->r->pool);
    }
    request->arg = list;
    return mdl_list_end(query, &list->page);
}

MDL_EFFECT(mdl_asset_list, mdl_asset_list_t *)
MDL_EFFECT(mdl_asset_get, mdl_entity_ref_t *)

static apr_status_t asset_parse_change(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_asset_change_t *change = mdl_resource_begin(request, sizeof *change);

    change->filename = mdl_asset_filename(members, MDL_OPTIONAL);
    change->title = mdl_asset_title(members, MDL_OPTIONAL);
    change->set_content_type = mdl_members_given(members, "content_type");
    change->content_type = mdl_asset_content_type(members, MDL_NULLABLE);
    change->set_category = mdl_members_given(members, "category_id");
    change->category_id = mdl_asset_category_id(members);
    return mdl_members_end(members);
}

MDL_EFFECT(mdl_asset_change, mdl_asset_change_t *)
MDL_EFFECT(mdl_asset_delete, mdl_entity_ref_t *)

static apr_status_t asset_parse_restore(mdl_request_t *request)
{
    mdl_asset_restore_t *restore = mdl_resource_begin(request, sizeof *restore);

    restore->version = mdl_identifier_parse(request->parameters[1]);
    restore->quota = request->service->settings->storage_quota;
    return mdl_members_none(request);
}

MDL_EFFECT(mdl_asset_restore, mdl_asset_restore_t *)

const mdl_route_t mdl_asset_routes[] = {
    {"GET", "/assets", .write_entity = asset_write_members, .parse = asset_parse_list,
     .effect = mdl_asset_list_effect, .write = mdl_list_write},
    {"GET", "/assets/{}", .versioned = 1, .write_entity = asset_write_members,
     .parse = mdl_resource_parse, .effect = mdl_asset_get_effect, .write = mdl_resource_write},
    {"PATCH", "/assets/{}", "asset", "changed", .versioned = 1, .write_entity = asset_write_members,
     .parse = asset_parse_change, .effect = mdl_asset_change_effect, .write = mdl_resource_write},
    {"DELETE", "/assets/{}", "asset", "deleted", .versioned = 1, .optional_body = 1,
     .parse = mdl_resource_parse_delete, .effect = mdl_asset_delete_effect,
     .write = mdl_resource_write_deleted},
    {"POST", "/assets/{}/versions/{}/restore", "asset", "version_restored", .versioned = 1,
     .optional_body = 1, .write_entity = asset_write_members, .parse = asset_parse_restore,
     .effect = mdl_asset_restore_effect, .write = mdl_resource_write},
    {0},
};
