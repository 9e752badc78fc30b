#include "api/routes.h"

#include "api/list.h"
#include "api/order_view.h"
#include "api/resource.h"
#include "core/identifier.h"
#include "core/order/history.h"

static apr_status_t history_parse(mdl_request_t *request)
{
    mdl_history_t *history = apr_pcalloc(request->r->pool, sizeof *history);

    history->storefront_order_id = request->parameters[0];
    history->problem = &request->problem;
    request->arg = history;
    return mdl_identifier_is_digits(request->parameters[0])
               ? mdl_list_end(mdl_list_begin(request), &history->page)
               : mdl_order_refuse_unknown(&request->problem);
}

static const char *entry_write_row(mdl_json_t *to, mdl_request_t *request, const void *row)
{
    const mdl_timeline_entry_t *entry = row;

    mdl_order_write_entry(to, entry, request->r->pool);
    return mdl_resource_id(request, entry->id);
}

MDL_EFFECT(mdl_history_timeline, mdl_history_t *)

static const char *download_write_row(mdl_json_t *to, mdl_request_t *request, const void *row)
{
    const mdl_session_view_t *download = row;

    mdl_order_write_download(to, download);
    return mdl_session_place(download, request->r->pool);
}

MDL_EFFECT(mdl_history_downloads, mdl_history_t *)

static const char *email_write_row(mdl_json_t *to, mdl_request_t *request, const void *row)
{
    const mdl_email_view_t *email = row;

    mdl_json_add_int(to, "id", email->id);
    mdl_order_write_email(to, &email->state);
    mdl_json_add_time(to, "created_at", email->created_at);
    return mdl_resource_id(request, email->id);
}

MDL_EFFECT(mdl_history_emails, mdl_history_t *)

const mdl_route_t mdl_order_history_routes[] = {
    {"GET", "/orders/{}/events", .write_entity = entry_write_row, .parse = history_parse,
     .effect = mdl_history_timeline_effect, .write = mdl_list_write},
    {"GET", "/orders/{}/downloads", .write_entity = download_write_row, .parse = history_parse,
     .effect = mdl_history_downloads_effect, .write = mdl_list_write},
    {"GET", "/orders/{}/emails", .write_entity = email_write_row, .parse = history_parse,
     .effect = mdl_history_emails_effect, .write = mdl_list_write},
    {0},
};
