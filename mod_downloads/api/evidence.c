/*
 * GET /orders/{}/evidence (contract, section 6).
 */
#include "core/order/evidence.h"

#include "api/order_view.h"
#include "api/routes.h"
#include "core/identifier.h"
#include "core/order/history.h"
#include "core/order/visit.h"

static apr_status_t evidence_parse(mdl_request_t *request)
{
    mdl_evidence_t *evidence = apr_pcalloc(request->r->pool, sizeof *evidence);
    const mdl_settings_t *settings = request->service->settings;

    *evidence = (mdl_evidence_t){.shop_id = request->caller.shop_id,
                                 .storefront_order_id = request->parameters[0],
                                 .keep = &settings->keep,
                                 .default_download_limit = settings->download_limit,
                                 .problem = &request->problem};
    request->arg = evidence;
    return mdl_identifier_is_digits(request->parameters[0])
               ? APR_SUCCESS
               : mdl_order_refuse_unknown(&request->problem);
}

MDL_EFFECT(mdl_evidence, mdl_evidence_t *)

static void write_item(mdl_json_t *to, const mdl_assignment_t *item)
{
    mdl_json_t *list;

    mdl_json_add_int(to, "assignment_id", item->id);
    mdl_json_add_string(to, "storefront_product_id", item->storefront_product_id);
    mdl_json_add_string(to, "storefront_variant_id",
                        *item->storefront_variant_id != '\0' ? item->storefront_variant_id : NULL);
    mdl_json_add_string(to, "title", item->title);
    mdl_json_add_int(to, "quantity", item->quantity);
    mdl_json_add_string(to, "status", mdl_assignment_status_names[item->status]);
    list = mdl_json_add_array(to, "files");
    for (int i = 0; i < item->files->nelts; i++) {
        mdl_order_write_file(mdl_json_add_object(list, NULL),
                             APR_ARRAY_IDX(item->files, i, const mdl_order_file_t *));
    }
    mdl_json_add_int(to, "links", item->links->nelts);
    mdl_json_add_int(to, "license_keys", item->license_keys->nelts);
    mdl_json_add_time(to, "created_at", item->created_at);
    mdl_json_add_time(to, "expires_at", item->expires_at);
}

static void write_email(mdl_json_t *to, const mdl_email_view_t *email)
{
    mdl_json_add_int(to, "id", email->id);
    mdl_order_write_email(to, &email->state);
    mdl_json_add_time(to, "created_at", email->created_at);
    mdl_json_add_string(to, "response", email->response);
    mdl_json_add_time(to, "bounced_at", email->state.bounced_at);
}

static void write_download(mdl_json_t *to, const mdl_session_view_t *download, apr_pool_t *p)
{
    mdl_json_add_int(to, "assignment_id", download->assignment_id);
    mdl_json_add_int_if(to, "file_id", download->asset_id, download->asset_id != 0);
    mdl_json_add_string(to, "filename", download->filename);
    mdl_json_add_int_if(to, "version", download->version, download->version != 0);
    mdl_json_add_string(to, "sha256", mdl_evidence_sha256(download, p));
    mdl_json_add_int(to, "size", download->size);
    mdl_json_add_string(to, "status", mdl_session_status_names[download->status]);
    mdl_json_add_int(to, "bytes_sent", download->bytes - download->handed_over);
    mdl_json_add_int(to, "bytes_acknowledged", download->acknowledged);
    mdl_json_add_int(to, "bytes_handed_over", download->handed_over);
    mdl_json_add_int(to, "transfers", download->transfers);
    mdl_json_add_string(to, "network", download->network);
    mdl_json_add_time(to, "opened_at", download->opened_at);
    mdl_json_add_time(to, "ended_at", download->ended_at);
}

static mdl_json_t *write_list(mdl_json_t *to, const char *name, const mdl_evidence_list_t *list)
{
    mdl_json_t *object = mdl_json_add_object(to, name);

    mdl_json_add_time(object, "gone_before", list->gone_before);
    mdl_json_add_bool(object, "has_more", list->has_more);
    return mdl_json_add_array(object, "data");
}

static void write_order(mdl_json_t *to, const mdl_order_t *order)
{
    mdl_json_t *list;

    mdl_json_add_string(to, "storefront_order_id", order->storefront_order_id);
    mdl_json_add_string(to, "name", order->name);
    mdl_json_add_time(to, "created_at", order->created_at);
    mdl_order_write_access(to, order);
    mdl_order_write_customer(to, order);
    mdl_json_add_string(to, "address", order->address);
    list = mdl_json_add_array(to, "items");
    for (int i = 0; i < order->assignments->nelts; i++) {
        write_item(mdl_json_add_object(list, NULL),
                   APR_ARRAY_IDX(order->assignments, i, const mdl_assignment_t *));
    }
}

static void evidence_write(mdl_request_t *request)
{
    const mdl_evidence_t *evidence = request->arg;
    mdl_json_t *to = request->response, *list;
    apr_pool_t *p = request->r->pool;

    mdl_json_add_time(to, "made_at", evidence->made_at);
    write_order(to, evidence->order);
    list = write_list(to, "emails", &evidence->emails);
    for (int i = 0; i < evidence->emails.rows->nelts; i++) {
        write_email(mdl_json_add_object(list, NULL),
                    APR_ARRAY_IDX(evidence->emails.rows, i, const mdl_email_view_t *));
    }
    list = write_list(to, "visits", &evidence->visits);
    for (int i = 0; i < evidence->visits.rows->nelts; i++) {
        const mdl_order_visit_t *visit = APR_ARRAY_IDX(evidence->visits.rows, i,
                                                       const mdl_order_visit_t *);
        mdl_json_t *each = mdl_json_add_object(list, NULL);

        mdl_json_add_time(each, "visited_at", visit->visited_at);
        mdl_json_add_string(each, "network", visit->network);
    }
    list = write_list(to, "events", &evidence->events);
    for (int i = 0; i < evidence->events.rows->nelts; i++) {
        mdl_order_write_entry(mdl_json_add_object(list, NULL),
                              APR_ARRAY_IDX(evidence->events.rows, i, const mdl_timeline_entry_t *),
                              p);
    }
    list = write_list(to, "downloads", &evidence->downloads);
    for (int i = 0; i < evidence->downloads.rows->nelts; i++) {
        write_download(mdl_json_add_object(list, NULL),
                       APR_ARRAY_IDX(evidence->downloads.rows, i, const mdl_session_view_t *), p);
    }
}

const mdl_route_t mdl_evidence_routes[] = {
    {"GET", "/orders/{}/evidence", .parse = evidence_parse, .effect = mdl_evidence_effect,
     .write = evidence_write},
    {0},
};
