#include "api/packs.h"

#include <apr_strings.h>

#include "api/list.h"
#include "api/members.h"
#include "core/pack.h"

#define MAX_NAME 255

static void write_members(mdl_json_t *to, const mdl_pack_t *pack)
{
    mdl_json_t *list;

    mdl_json_add_int(to, "id", pack->id);
    mdl_json_add_string(to, "name", pack->name);
    list = mdl_json_add_array(to, "file_ids");
    for (int i = 0; i < pack->file_ids->nelts; i++) {
        mdl_json_add_int(list, NULL, APR_ARRAY_IDX(pack->file_ids, i, apr_int64_t));
    }
    mdl_json_add_time(to, "created_at", pack->created_at);
    mdl_json_add_time(to, "updated_at", pack->updated_at);
}

static mdl_pack_edit_t *begin(mdl_call_t *call)
{
    mdl_pack_edit_t *edit = apr_pcalloc(call->r->pool, sizeof *edit);

    edit->shop_id = call->caller.shop_id;
    edit->refusal = &call->refusal;
    if (call->parameters[0] != NULL) {
        edit->id = mdl_members_path_id(call->parameters[0]);
    }
    call->arg = edit;
    return edit;
}

static apr_status_t parse_get(mdl_call_t *call)
{
    begin(call);
    return APR_SUCCESS;
}

static apr_status_t parse_create(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_pack_edit_t *edit = begin(call);

    edit->name = mdl_members_text(members, "name", MDL_REQUIRED, MAX_NAME);
    edit->file_ids = mdl_members_ids(members, "file_ids");
    return mdl_members_end(members);
}

static apr_status_t parse_change(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_pack_edit_t *edit = begin(call);

    edit->name = mdl_members_text(members, "name", mdl_members_if_given(members, "name"), MAX_NAME);
    edit->file_ids = mdl_members_new_ids(members, "file_ids");
    return mdl_members_end(members);
}

static apr_status_t parse_delete(mdl_call_t *call)
{
    begin(call);
    return mdl_members_none(call);
}

static void write_one(mdl_call_t *call)
{
    write_members(call->answer, ((const mdl_pack_edit_t *)call->arg)->pack);
}

static void write_changed(mdl_call_t *call)
{
    write_members(mdl_json_add_object(call->answer, "pack"),
                  ((const mdl_pack_edit_t *)call->arg)->pack);
}

static void write_created(mdl_call_t *call)
{
    call->status = HTTP_CREATED;
    call->location = apr_psprintf(call->r->pool, "%s/packs/%" APR_INT64_T_FMT, call->root,
                                  ((const mdl_pack_edit_t *)call->arg)->pack->id);
    write_changed(call);
}

static void write_deleted(mdl_call_t *call)
{
    call->status = HTTP_NO_CONTENT;
}

static const char *write_row(mdl_json_t *to, mdl_call_t *call, const void *row)
{
    const mdl_pack_t *pack = row;

    write_members(to, pack);
    return apr_psprintf(call->r->pool, "%" APR_INT64_T_FMT, pack->id);
}

static void write_list(mdl_call_t *call)
{
    const mdl_listing_t *listing = call->arg;

    mdl_list_write(listing->list, listing->page.found, write_row);
}

const mdl_route_t mdl_route_pack_list = {
    .method = "GET",
    .path = "/packs",
    .parse = mdl_listing_parse,
    .effect = mdl_pack_page,
    .write = write_list,
};

const mdl_route_t mdl_route_pack_create = {
    .method = "POST",
    .path = "/packs",
    .parse = parse_create,
    .effect = mdl_pack_create,
    .write = write_created,
};

const mdl_route_t mdl_route_pack = {
    .method = "GET",
    .path = "/packs/{}",
    .parse = parse_get,
    .effect = mdl_pack_find,
    .write = write_one,
};

const mdl_route_t mdl_route_pack_change = {
    .method = "PATCH",
    .path = "/packs/{}",
    .parse = parse_change,
    .effect = mdl_pack_change,
    .write = write_changed,
};

const mdl_route_t mdl_route_pack_delete = {
    .method = "DELETE",
    .path = "/packs/{}",
    .optional_body = 1,
    .parse = parse_delete,
    .effect = mdl_pack_delete,
    .write = write_deleted,
};
