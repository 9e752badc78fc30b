#include "api/assets.h"

#include <string.h>

#include <apr_strings.h>

#include "api/list.h"
#include "base/media_type.h"

#define MAX_FILENAME 255
#define MAX_TITLE    255
#define SHA256_CHARS "0123456789abcdefABCDEF"

int mdl_asset_filename_valid(const char *name)
{
    return strlen(name) <= MAX_FILENAME && strpbrk(name, "/\\") == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

const char *mdl_asset_filename(mdl_members_t *members, mdl_presence_t presence)
{
    const char *name = mdl_members_text(members, "filename", presence, MAX_FILENAME);

    if (name != NULL && !mdl_asset_filename_valid(name)) {
        mdl_members_fault(members, "filename", "invalid",
                          "This member must be a file's name without a path.");
        return NULL;
    }
    return name;
}

const char *mdl_asset_title(mdl_members_t *members, mdl_presence_t presence)
{
    return mdl_members_text(members, "title", presence, MAX_TITLE);
}

const char *mdl_asset_content_type(mdl_members_t *members)
{
    const char *type = mdl_members_text(members, "content_type", MDL_OPTIONAL, MDL_MEDIA_TYPE_MAX);

    if (type != NULL && !mdl_media_type_valid(type)) {
        mdl_members_fault(members, "content_type", "invalid",
                          "This member must be a media type such as video/mp4.");
        return NULL;
    }
    return type;
}

apr_int64_t mdl_asset_category_id(mdl_members_t *members)
{
    return mdl_members_int(members, "category_id", 1, (APR_INT64_C(1) << 53) - 1, 0);
}

static int is_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, SHA256_CHARS) == 64;
}

static const char *lower(const char *text, apr_pool_t *p)
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
    return text != NULL ? lower(text, p) : NULL;
}

static void write_members(mdl_json_t *to, const mdl_asset_t *asset)
{
    mdl_json_add_int(to, "id", asset->id);
    mdl_json_add_string(to, "status", asset->status);
    mdl_json_add_string(to, "filename", asset->filename);
    mdl_json_add_string(to, "title", asset->title);
    mdl_json_add_string(to, "content_type", asset->content_type);
    if (asset->sha256 != NULL) {
        mdl_json_add_int(to, "size", asset->size);
    } else {
        mdl_json_add_null(to, "size");
    }
    mdl_json_add_string(to, "sha256", asset->sha256);
    if (asset->category_id != 0) {
        mdl_json_add_int(to, "category_id", asset->category_id);
    } else {
        mdl_json_add_null(to, "category_id");
    }
    mdl_json_add_string(to, "source_url", asset->source_url);
    mdl_json_add_int(to, "version", asset->version);
    mdl_json_add_time(to, "created_at", asset->created_at);
    mdl_json_add_time(to, "updated_at", asset->updated_at);
}

void mdl_asset_write(mdl_json_t *to, const char *name, const mdl_asset_t *asset)
{
    write_members(mdl_json_add_object(to, name), asset);
}

/* The list. */

typedef struct {
    mdl_asset_list_t core;
    mdl_list_t *list;
} list_t;

static apr_status_t parse_list(mdl_call_t *call)
{
    static const char *const statuses[] = {"pending", "ready", "failed", NULL};
    list_t *arg = apr_pcalloc(call->r->pool, sizeof *arg);
    mdl_list_t *list = mdl_list_begin(call);
    mdl_asset_list_t *core = &arg->core;
    const char *sha256 = mdl_list_text(list, "sha256", 64);
    apr_status_t rv;

    core->status = mdl_list_choice(list, "status", statuses);
    core->category_id = mdl_list_id(list, "category_id");
    core->filename = mdl_list_text(list, "filename", MAX_FILENAME);
    if (sha256 != NULL && !is_sha256(sha256)) {
        mdl_list_fault(list, "sha256", "invalid", "This parameter must be 64 hexadecimal digits.");
    } else if (sha256 != NULL) {
        core->sha256 = lower(sha256, call->r->pool);
    }
    if ((rv = mdl_list_end(list)) != APR_SUCCESS) {
        return rv;
    }
    core->shop_id = call->caller.shop_id;
    core->before = mdl_list_before(list);
    core->limit = mdl_list_rows(list);
    arg->list = list;
    call->arg = arg;
    return APR_SUCCESS;
}

static const char *write_row(mdl_json_t *to, mdl_call_t *call, const void *row)
{
    const mdl_asset_t *asset = row;

    write_members(to, asset);
    return apr_psprintf(call->r->pool, "%" APR_INT64_T_FMT, asset->id);
}

static void write_list(mdl_call_t *call)
{
    const list_t *arg = call->arg;

    mdl_list_write(arg->list, arg->core.assets, write_row);
}

const mdl_route_t mdl_route_asset_list = {
    .method = "GET",
    .path = "/assets",
    .parse = parse_list,
    .effect = mdl_asset_list,
    .write = write_list,
};

/* One asset. */

typedef struct {
    mdl_call_t *call;
    apr_int64_t id;
    mdl_asset_t *asset;
} get_t;

static apr_status_t parse_get(mdl_call_t *call)
{
    get_t *get = apr_pcalloc(call->r->pool, sizeof *get);

    get->call = call;
    get->id = mdl_members_path_id(call->parameters[0]);
    call->arg = get;
    return APR_SUCCESS;
}

static apr_status_t get_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    get_t *get = arg;

    return mdl_asset_find(db, get->call->caller.shop_id, get->id, &get->asset, &get->call->refusal,
                          p);
}

static void write_get(mdl_call_t *call)
{
    write_members(call->answer, ((get_t *)call->arg)->asset);
}

const mdl_route_t mdl_route_asset = {
    .method = "GET",
    .path = "/assets/{}",
    .parse = parse_get,
    .effect = get_effect,
    .write = write_get,
};

static apr_status_t parse_change(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_asset_change_t *change = apr_pcalloc(call->r->pool, sizeof *change);

    change->shop_id = call->caller.shop_id;
    change->id = mdl_members_path_id(call->parameters[0]);
    change->filename = mdl_asset_filename(members, mdl_members_if_given(members, "filename"));
    change->title = mdl_asset_title(members, mdl_members_if_given(members, "title"));
    change->set_content_type = mdl_members_given(members, "content_type");
    change->content_type = mdl_asset_content_type(members);
    change->set_category = mdl_members_given(members, "category_id");
    change->category_id = mdl_asset_category_id(members);
    change->refusal = &call->refusal;
    call->arg = change;
    return mdl_members_end(members);
}

static void write_change(mdl_call_t *call)
{
    mdl_asset_write(call->answer, "asset", ((mdl_asset_change_t *)call->arg)->asset);
}

const mdl_route_t mdl_route_asset_change = {
    .method = "PATCH",
    .path = "/assets/{}",
    .parse = parse_change,
    .effect = mdl_asset_change,
    .write = write_change,
};

static apr_status_t parse_delete(mdl_call_t *call)
{
    mdl_asset_delete_t *delete = apr_pcalloc(call->r->pool, sizeof *delete);

    delete->shop_id = call->caller.shop_id;
    delete->id = mdl_members_path_id(call->parameters[0]);
    delete->refusal = &call->refusal;
    call->arg = delete;
    return mdl_members_none(call);
}

static void write_delete(mdl_call_t *call)
{
    call->status = HTTP_NO_CONTENT;
}

const mdl_route_t mdl_route_asset_delete = {
    .method = "DELETE",
    .path = "/assets/{}",
    .wakes = 1,
    .optional_body = 1,
    .parse = parse_delete,
    .effect = mdl_asset_delete,
    .write = write_delete,
};
