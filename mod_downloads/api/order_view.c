#include "api/order_view.h"

#include "core/download/signed_url.h"

void mdl_order_write_file(mdl_json_t *to, const mdl_order_file_t *file)
{
    mdl_json_add_int(to, "file_id", file->asset_id);
    mdl_json_add_string(to, "filename", file->filename);
    mdl_json_add_int_if(to, "size", file->size, file->sha256 != NULL);
    mdl_json_add_string(to, "sha256", file->sha256);
    mdl_json_add_string(to, "status", mdl_asset_status_names[file->status]);
    mdl_json_add_int(to, "downloads_used", file->downloads.used);
    mdl_json_add_int(to, "download_limit", file->download_limit);
}

static void order_write_links(mdl_json_t *to, const apr_array_header_t *links)
{
    for (int i = 0; i < links->nelts; i++) {
        const mdl_order_link_t *link = APR_ARRAY_IDX(links, i, mdl_order_link_t *);
        mdl_json_t *object = mdl_json_add_object(to, NULL);

        mdl_json_add_int(object, "link_id", link->link_id);
        mdl_json_add_string(object, "title", link->title);
        mdl_json_add_string(object, "url", link->url);
    }
}

/* Adds null if the API key may not see license keys or the secret does not open them. */
static void order_write_license_keys(mdl_json_t *to, const mdl_request_t *request,
                                     const mdl_assignment_t *assignment)
{
    const apr_array_header_t *keys = request->caller.scope >= MDL_KEY_SCOPE_DELIVER
                                         ? mdl_license_keys_open(request->service->secret,
                                                                 assignment->license_keys,
                                                                 request->r->pool)
                                         : NULL;
    mdl_json_t *list;

    if (keys == NULL) {
        mdl_json_add_null(to, "license_keys");
        return;
    }
    list = mdl_json_add_array(to, "license_keys");
    for (int i = 0; i < keys->nelts; i++) {
        mdl_json_add_string(list, NULL, APR_ARRAY_IDX(keys, i, const char *));
    }
}

void mdl_assignment_write(mdl_json_t *to, const mdl_request_t *request,
                          const mdl_assignment_t *assignment)
{
    mdl_json_t *list;

    mdl_json_add_int(to, "id", assignment->id);
    mdl_json_add_string(to, "storefront_product_id", assignment->storefront_product_id);
    mdl_json_add_string(
        to, "storefront_variant_id",
        *assignment->storefront_variant_id != '\0' ? assignment->storefront_variant_id : NULL);
    mdl_json_add_string(to, "title", assignment->title);
    mdl_json_add_int(to, "quantity", assignment->quantity);
    mdl_json_add_string(to, "status", mdl_assignment_status_names[assignment->status]);
    mdl_json_add_int(to, "mapping_id", assignment->mapping_id);
    mdl_json_add_string(to, "download_type", mdl_download_type_names[assignment->download_type]);
    list = mdl_json_add_array(to, "files");
    for (int i = 0; i < assignment->files->nelts; i++) {
        mdl_order_write_file(mdl_json_add_object(list, NULL),
                             APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *));
    }
    order_write_links(mdl_json_add_array(to, "links"), assignment->links);
    order_write_license_keys(to, request, assignment);
    mdl_json_add_int(to, "license_keys_pending", assignment->license_keys_pending);
    mdl_json_add_time(to, "created_at", assignment->created_at);
    mdl_json_add_time(to, "expires_at", assignment->expires_at);
}

void mdl_order_write_email(mdl_json_t *to, const mdl_email_state_t *email)
{
    mdl_json_add_string(to, "status", mdl_email_status_names[email->status]);
    mdl_json_add_string(to, "to", email->to);
    mdl_json_add_int(to, "attempts", email->attempts);
    mdl_json_add_string(to, "last_error", email->last_error);
    mdl_json_add_time(to, "sent_at", email->sent_at);
}

void mdl_order_write_entry(mdl_json_t *to, const mdl_timeline_entry_t *entry, apr_pool_t *p)
{
    mdl_json_add_int(to, "id", entry->id);
    mdl_json_add_string(to, "action", entry->action);
    mdl_json_add_copy(to, "assignment_ids", mdl_json_stored(entry->assignment_ids, p));
    mdl_json_add_string(to, "key_id", entry->key_id);
    mdl_json_add_string(to, "user", entry->user);
    mdl_json_add_string(to, "reason", entry->reason);
    mdl_json_add_copy(to, "details", mdl_json_stored(entry->details, p));
    mdl_json_add_time(to, "created_at", entry->created_at);
}

void mdl_order_write_download(mdl_json_t *to, const mdl_session_view_t *session)
{
    mdl_json_add_int(to, "assignment_id", session->assignment_id);
    mdl_json_add_int_if(to, "file_id", session->asset_id, session->asset_id != 0);
    mdl_json_add_string(to, "status", mdl_session_status_names[session->status]);
    mdl_json_add_int(to, "bytes_delivered", session->bytes);
    mdl_json_add_int(to, "size", session->size);
    mdl_json_add_int(to, "transfers", session->transfers);
    mdl_json_add_time(to, "opened_at", session->opened_at);
    mdl_json_add_time(to, "updated_at", session->updated_at);
}

static void order_write_history(mdl_json_t *to, const mdl_order_t *order, apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_add_array(to, "downloads");

    for (int i = 0; i < order->downloads->nelts; i++) {
        mdl_order_write_download(mdl_json_add_object(list, NULL),
                                 APR_ARRAY_IDX(order->downloads, i, const mdl_session_view_t *));
    }
    list = mdl_json_add_array(to, "events");
    for (int i = 0; i < order->timeline->nelts; i++) {
        mdl_order_write_entry(mdl_json_add_object(list, NULL),
                              APR_ARRAY_IDX(order->timeline, i, const mdl_timeline_entry_t *), p);
    }
}

static void order_write_assignments(mdl_json_t *to, const mdl_request_t *request,
                                    const mdl_order_t *order)
{
    mdl_json_t *list = mdl_json_add_array(to, "assignments");

    for (int i = 0; i < order->assignments->nelts; i++) {
        mdl_assignment_write(mdl_json_add_object(list, NULL), request,
                             APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *));
    }
    if (order->files_truncated) {
        mdl_json_add_bool(to, "files_truncated", 1);
    }
    if (order->links_truncated) {
        mdl_json_add_bool(to, "links_truncated", 1);
    }
}

void mdl_order_write_access(mdl_json_t *to, const mdl_order_t *order)
{
    mdl_json_t *object = mdl_json_add_object(to, "access");

    mdl_json_add_string(object, "status", mdl_order_access_names[order->state.access]);
    mdl_json_add_string(object, "reason", order->access_reason);
    mdl_json_add_time(object, "expires_at", order->expires_at);
}

void mdl_order_write_customer(mdl_json_t *to, const mdl_order_t *order)
{
    mdl_json_t *object = mdl_json_add_object(to, "customer");

    mdl_json_add_int(object, "id", order->customer.id);
    mdl_json_add_string(object, "storefront_customer_id", order->customer.storefront_customer_id);
    mdl_json_add_string(object, "email", order->customer.email);
    mdl_json_add_string(object, "first_name", order->customer.first_name);
    mdl_json_add_string(object, "last_name", order->customer.last_name);
    mdl_json_add_string(object, "locale", order->customer.locale);
}

void mdl_order_write(mdl_json_t *to, mdl_request_t *request, const mdl_order_t *order)
{
    apr_pool_t *p = request->r->pool;
    mdl_json_t *object;

    mdl_json_add_string(to, "storefront_order_id", order->storefront_order_id);
    mdl_json_add_string(to, "name", order->name);
    mdl_order_write_access(to, order);
    mdl_order_write_customer(to, order);
    mdl_json_add_string(to, "recipient", order->own_address);
    if (order->assignments != NULL) {
        order_write_assignments(to, request, order);
    } else {
        mdl_json_add_int(to, "assignment_count", order->assignment_count);
    }
    object = mdl_json_add_object(to, "fraud");
    mdl_json_add_string(object, "decision", mdl_fraud_decision_names[order->state.decision]);
    mdl_json_add_string(object, "level",
                        order->fraud_signals != NULL ? mdl_risk_names[order->fraud_level] : NULL);
    if (order->assignments != NULL) {
        mdl_json_add_copy(
            object, "signals",
            mdl_json_stored(order->fraud_signals != NULL ? order->fraud_signals : "[]", p));
    }
    mdl_order_write_email(mdl_json_add_object(to, "email"), &order->email);
    mdl_json_add_string(to, "download_page_url",
                        request->caller.scope < MDL_KEY_SCOPE_DELIVER
                            ? NULL
                            : mdl_signed_url_page(request->service->secret,
                                                  request->service->settings->public_url,
                                                  order->page_id, p));
    mdl_json_add_time(to, "created_at", order->created_at);
    mdl_json_add_time(to, "updated_at", order->updated_at);
    if (order->timeline != NULL) {
        order_write_history(to, order, p);
    }
}
