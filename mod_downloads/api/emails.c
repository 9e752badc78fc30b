#include "api/routes.h"

#include "api/list.h"
#include "api/order_view.h"
#include "api/resource.h"
#include "core/identifier.h"
#include "core/order/email_log.h"
#include "core/order/search.h"

static apr_status_t email_parse_list(mdl_request_t *request)
{
    mdl_email_log_t *log = apr_pcalloc(request->r->pool, sizeof *log);
    mdl_list_t *query = mdl_list_begin(request);

    /* What can have become of an email that there is. */
    log->fate = mdl_list_choice(query, "status", mdl_email_status_names + MDL_EMAIL_QUEUED);
    log->storefront_order_id = mdl_list_storefront_id(query, "storefront_order_id");
    log->address = mdl_list_text(query, "to", MDL_SEARCH_TEXT_MAX);
    request->arg = log;
    return mdl_list_end(query, &log->page);
}

static const char *email_write_row(mdl_json_t *to, mdl_request_t *request, const void *row)
{
    const mdl_email_line_t *line = row;

    mdl_json_add_int(to, "id", line->id);
    mdl_json_add_string(to, "storefront_order_id", line->storefront_order_id);
    mdl_json_add_string(to, "order_name", line->order_name);
    mdl_json_add_string(to, "kind", line->earlier ? "further" : "first");
    mdl_order_write_email(to, &line->state);
    mdl_json_add_time(to, "created_at", line->created_at);
    return mdl_resource_id(request, line->id);
}

MDL_EFFECT(mdl_email_log, mdl_email_log_t *)

const mdl_route_t mdl_email_routes[] = {
    {"GET", "/emails", .write_entity = email_write_row, .parse = email_parse_list,
     .effect = mdl_email_log_effect, .write = mdl_list_write},
    {0},
};
