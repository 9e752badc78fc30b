#include "api/links.h"

#include <apr_strings.h>

#include "api/list.h"
#include "api/members.h"
#include "base/http_client.h"
#include "core/web_link.h"

#define MAX_TITLE 255
#define MAX_URL   2048

static void write_members(mdl_json_t *to, const mdl_web_link_t *link)
{
    mdl_json_add_int(to, "id", link->id);
    mdl_json_add_string(to, "title", link->title);
    mdl_json_add_string(to, "url", link->url);
    mdl_json_add_time(to, "created_at", link->created_at);
    mdl_json_add_time(to, "updated_at", link->updated_at);
}

static mdl_web_link_edit_t *begin(mdl_call_t *call)
{
    mdl_web_link_edit_t *edit = apr_pcalloc(call->r->pool, sizeof *edit);

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

static const char *url_of(mdl_members_t *members, mdl_presence_t presence)
{
    const char *url = mdl_members_text(members, "url", presence, MAX_URL);

    if (url != NULL && !mdl_http_url_is_https(url)) {
        mdl_members_fault(members, "url", "invalid",
                          "This member must be an absolute https URL with a host, without user or "
                          "password, in ASCII.");
    }
    return url;
}

static apr_status_t parse_create(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_web_link_edit_t *edit = begin(call);

    edit->title = mdl_members_text(members, "title", MDL_REQUIRED, MAX_TITLE);
    edit->url = url_of(members, MDL_REQUIRED);
    return mdl_members_end(members);
}

static apr_status_t parse_change(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_web_link_edit_t *edit = begin(call);

    edit->title = mdl_members_text(members, "title", mdl_members_if_given(members, "title"),
                                   MAX_TITLE);
    edit->url = url_of(members, mdl_members_if_given(members, "url"));
    return mdl_members_end(members);
}

static apr_status_t parse_delete(mdl_call_t *call)
{
    begin(call);
    return mdl_members_none(call);
}

static void write_one(mdl_call_t *call)
{
    write_members(call->answer, ((const mdl_web_link_edit_t *)call->arg)->link);
}

static void write_changed(mdl_call_t *call)
{
    write_members(mdl_json_add_object(call->answer, "link"),
                  ((const mdl_web_link_edit_t *)call->arg)->link);
}

static void write_created(mdl_call_t *call)
{
    call->status = HTTP_CREATED;
    call->location = apr_psprintf(call->r->pool, "%s/links/%" APR_INT64_T_FMT, call->root,
                                  ((const mdl_web_link_edit_t *)call->arg)->link->id);
    write_changed(call);
}

static void write_deleted(mdl_call_t *call)
{
    call->status = HTTP_NO_CONTENT;
}

static const char *write_row(mdl_json_t *to, mdl_call_t *call, const void *row)
{
    const mdl_web_link_t *link = row;

    write_members(to, link);
    return apr_psprintf(call->r->pool, "%" APR_INT64_T_FMT, link->id);
}

static void write_list(mdl_call_t *call)
{
    const mdl_listing_t *listing = call->arg;

    mdl_list_write(listing->list, listing->page.found, write_row);
}

const mdl_route_t mdl_route_link_list = {
    .method = "GET",
    .path = "/links",
    .parse = mdl_listing_parse,
    .effect = mdl_web_link_page,
    .write = write_list,
};

const mdl_route_t mdl_route_link_create = {
    .method = "POST",
    .path = "/links",
    .parse = parse_create,
    .effect = mdl_web_link_create,
    .write = write_created,
};

const mdl_route_t mdl_route_link = {
    .method = "GET",
    .path = "/links/{}",
    .parse = parse_get,
    .effect = mdl_web_link_find,
    .write = write_one,
};

const mdl_route_t mdl_route_link_change = {
    .method = "PATCH",
    .path = "/links/{}",
    .parse = parse_change,
    .effect = mdl_web_link_change,
    .write = write_changed,
};

const mdl_route_t mdl_route_link_delete = {
    .method = "DELETE",
    .path = "/links/{}",
    .optional_body = 1,
    .parse = parse_delete,
    .effect = mdl_web_link_delete,
    .write = write_deleted,
};
