/*
 * The evidence of an order, to print.
 */
#include "settings/pages.h"

#include "base/text/present.h"
#include "core/order/evidence.h"
#include "core/order/history.h"
#include "core/order/timeline.h"
#include "core/order/visit.h"
#include "settings/frame.h"
#include "settings/order_story.h"
#include "settings/orders.h"

MDL_EFFECT(mdl_evidence, mdl_evidence_t *)

/* What the template says below each list. */
static void add_rest(mdl_json_t *to, const char *name, const mdl_evidence_list_t *list)
{
    mdl_json_t *rest = mdl_json_add_object(to, name);

    mdl_json_add_bool(rest, "none", list->rows->nelts == 0);
    mdl_json_add_bool(rest, "has_more", list->has_more);
    mdl_present_date(rest, "gone_before", list->gone_before);
}

static void add_items(mdl_json_t *to, const mdl_order_t *order)
{
    mdl_json_t *items = mdl_json_add_array(to, "items");

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i,
                                                     const mdl_assignment_t *);
        mdl_json_t *item = mdl_json_add_object(items, NULL), *files;

        mdl_json_add_string(item, "title", each->title);
        mdl_json_add_int(item, "quantity", each->quantity);
        mdl_present_date(item, "bought_at", each->created_at);
        mdl_json_add_int_if(item, "links", each->links->nelts, each->links->nelts > 0);
        mdl_json_add_int_if(item, "license_keys", each->license_keys->nelts,
                            each->license_keys->nelts > 0);
        files = mdl_json_add_array(item, "files");
        for (int j = 0; j < each->files->nelts; j++) {
            const mdl_order_file_t *file = APR_ARRAY_IDX(each->files, j, const mdl_order_file_t *);
            mdl_json_t *object = mdl_json_add_object(files, NULL);

            mdl_json_add_string(object, "filename", file->filename);
            mdl_json_add_string(object, "sha256", file->sha256);
            mdl_json_add_int(object, "bytes", file->size);
        }
    }
}

static void add_emails(mdl_json_t *to, const mdl_evidence_list_t *list)
{
    mdl_json_t *emails = mdl_json_add_array(to, "emails");

    for (int i = 0; i < list->rows->nelts; i++) {
        const mdl_email_view_t *each = APR_ARRAY_IDX(list->rows, i, const mdl_email_view_t *);
        const mdl_email_state_t *state = &each->state;
        mdl_json_t *email = mdl_json_add_object(emails, NULL);

        mdl_json_add_string(email, "email_event", mdl_email_status_names[state->status]);
        mdl_json_add_string(email, "to", state->to);
        mdl_present_date(email, "created", each->created_at);
        mdl_present_date(email, "sent", state->sent_at);
        mdl_present_date(email, "bounced", state->bounced_at);
        mdl_json_add_string(email, "response", each->response);
        mdl_json_add_string(email, "last_error", state->last_error);
    }
}

static void add_visits(mdl_json_t *to, const mdl_evidence_list_t *list)
{
    mdl_json_t *visits = mdl_json_add_array(to, "visits");

    for (int i = 0; i < list->rows->nelts; i++) {
        const mdl_order_visit_t *each = APR_ARRAY_IDX(list->rows, i, const mdl_order_visit_t *);
        mdl_json_t *visit = mdl_json_add_object(visits, NULL);

        mdl_present_date(visit, "visited", each->visited_at);
        mdl_json_add_string(visit, "network", each->network);
    }
}

static void add_downloads(mdl_json_t *to, const mdl_evidence_list_t *list, apr_pool_t *p)
{
    mdl_json_t *downloads = mdl_json_add_array(to, "downloads");

    for (int i = 0; i < list->rows->nelts; i++) {
        const mdl_session_view_t *each = APR_ARRAY_IDX(list->rows, i, const mdl_session_view_t *);
        mdl_json_t *download = mdl_json_add_object(downloads, NULL);

        mdl_json_add_bool(download, "archive", each->asset_id == 0);
        mdl_json_add_string(download, "filename", each->filename);
        mdl_json_add_int_if(download, "version", each->version, each->version != 0);
        mdl_json_add_string(download, "sha256", mdl_evidence_sha256(each, p));
        mdl_frame_add_choice(download, mdl_session_status_names, (int)each->status);
        mdl_json_add_int(download, "bytes", each->size);
        mdl_json_add_int(download, "acknowledged", each->acknowledged);
        mdl_json_add_int_if(download, "handed_over", each->handed_over, each->handed_over > 0);
        mdl_json_add_string(download, "network", each->network);
        mdl_present_date(download, "begun", each->opened_at);
        mdl_present_date(download, "ended", each->ended_at);
    }
}

static int evidence_show(mdl_visit_t *visit)
{
    const mdl_settings_t *settings = visit->service->settings;
    mdl_evidence_t evidence = {.shop_id = visit->shop->id,
                               .storefront_order_id = visit->argument,
                               .keep = &settings->keep,
                               .default_download_limit = settings->download_limit,
                               .problem = &visit->problem};
    apr_pool_t *p = visit->r->pool;
    apr_status_t rv = mdl_visit_read(visit, mdl_evidence_effect, &evidence);
    mdl_order_t *order = evidence.order;
    mdl_json_t *data;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    mdl_visit_end(visit);
    data = mdl_frame_data(visit);
    mdl_json_add_string(data, "order_id", order->storefront_order_id);
    mdl_json_add_string(data, "order_name", order->name);
    mdl_present_date(data, "made", evidence.made_at);
    mdl_present_date(data, "created", order->created_at);
    mdl_orders_add_customer(data, order->customer.first_name, order->customer.last_name,
                            order->address, order->customer.storefront_customer_id, p);
    add_items(data, order);
    add_emails(data, &evidence.emails);
    add_rest(data, "emails_rest", &evidence.emails);
    add_visits(data, &evidence.visits);
    add_rest(data, "visits_rest", &evidence.visits);
    add_downloads(data, &evidence.downloads, p);
    add_rest(data, "downloads_rest", &evidence.downloads);
    order->timeline = evidence.events.rows;
    mdl_order_story_add(data, order, apr_array_make(p, 0, sizeof(mdl_email_view_t *)), p);
    add_rest(data, "events_rest", &evidence.events);
    return mdl_frame_send(visit, HTTP_OK, "order_evidence.html", data, NULL);
}

const mdl_page_t mdl_order_evidence_pages[] = {
    {"{}/orders/{}/evidence", .sees = MDL_ROLE_READ_ONLY, .get = evidence_show},
    {0},
};
