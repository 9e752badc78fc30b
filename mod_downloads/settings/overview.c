#include "settings/pages.h"

#include <apr_time.h>

#include "base/text/present.h"
#include "core/order/job_control.h"
#include "core/order/attention.h"
#include "core/order/help.h"
#include "core/shop/staff_email.h"
#include "settings/frame.h"
#include "settings/import_error.h"
#include "settings/orders.h"
#include "settings/overview_days.h"
#include "settings/queue.h"

#define LINES  20 /* of each kind */
#define RECENT apr_time_from_sec(30 * 86400)

/* What needs attention, who is told by email, what happened lately; for staff what the shop stores,
   for owners what it has waiting. */
typedef struct {
    mdl_attention_t *attention;
    apr_array_header_t *recipients;
    mdl_list_page_t days;
    mdl_role_t role; /* of whom it is for */
    mdl_shop_storage_t storage;
    mdl_queue_t queue;
} overview_t;

static apr_status_t overview_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    overview_t *overview = arg;
    apr_status_t rv = mdl_attention_read(db, p, overview->attention);

    if (rv == APR_SUCCESS) {
        rv = mdl_staff_email_recipients(db, overview->attention->shop_id, NULL,
                                        &overview->recipients, p);
    }
    if (rv == APR_SUCCESS && overview->role >= MDL_ROLE_OWNER) {
        rv = mdl_queue_read(db, p, &overview->queue);
    }
    if (rv == APR_SUCCESS && overview->role >= MDL_ROLE_STAFF) {
        rv = mdl_shop_storage(db, overview->attention->shop_id, NULL, &overview->storage, p);
    }
    return rv == APR_SUCCESS ? mdl_day_count_list(db, p, &overview->days) : rv;
}

/* Adds how many purchases wait, if any do, and whether there may be more. */
static void overview_add_waiting(mdl_json_t *to, apr_int64_t waiting)
{
    mdl_json_t *object = waiting > 0 ? mdl_json_add_object(to, "waiting") : NULL;

    if (object != NULL) {
        mdl_json_add_int(object, "waiting_count", waiting);
        mdl_json_add_bool(object, "at_least", waiting == MDL_WAITING_MAX);
    }
}

static void overview_add_help(mdl_json_t *data, const mdl_attention_list_t *list)
{
    mdl_json_t *help = mdl_json_add_array(data, "help");

    mdl_json_add_bool(data, "has_help", list->found->nelts > 0);
    mdl_json_add_bool(data, "more_help", list->more);
    for (int i = 0; i < list->found->nelts; i++) {
        const mdl_help_request_t *each = APR_ARRAY_IDX(list->found, i, const mdl_help_request_t *);
        mdl_json_t *to = mdl_json_add_object(help, NULL);

        mdl_json_add_string(to, "order_id", each->storefront_order_id);
        mdl_present_date(to, "at", each->asked_at);
    }
}

static void overview_add_imports(mdl_json_t *data, const mdl_attention_list_t *list)
{
    mdl_json_t *imports = mdl_json_add_array(data, "imports");

    mdl_json_add_bool(data, "has_imports", list->found->nelts > 0);
    mdl_json_add_bool(data, "more_imports", list->more);
    for (int i = 0; i < list->found->nelts; i++) {
        const mdl_failed_import_t *each = APR_ARRAY_IDX(list->found, i,
                                                        const mdl_failed_import_t *);
        mdl_json_t *to = mdl_json_add_object(imports, NULL);

        mdl_json_add_string(to, "job_id", each->job_id);
        mdl_json_add_string(to, "filename", each->filename);
        mdl_json_add_int(to, "asset_id", each->asset_id);
        mdl_import_error_add(to, each->error_code, each->error_message);
        mdl_present_date(to, "at", each->finished_at);
        overview_add_waiting(to, each->waiting);
    }
}

static void overview_add_emails(mdl_json_t *data, const mdl_attention_list_t *list)
{
    mdl_json_t *emails = mdl_json_add_array(data, "emails");

    mdl_json_add_bool(data, "has_emails", list->found->nelts > 0);
    mdl_json_add_bool(data, "more_emails", list->more);
    for (int i = 0; i < list->found->nelts; i++) {
        const mdl_undelivered_t *each = APR_ARRAY_IDX(list->found, i, const mdl_undelivered_t *);
        mdl_json_t *to = mdl_json_add_object(emails, NULL);

        mdl_json_add_string(to, "order_id", each->storefront_order_id);
        mdl_frame_add_choice(to, mdl_email_status_names, (int)each->status);
        mdl_json_add_string(to, "to", each->to);
        mdl_json_add_string(to, "last_error", each->last_error);
        mdl_present_date(to, "at", each->at);
    }
}

static void overview_add_typos(mdl_json_t *data, const mdl_attention_list_t *list)
{
    mdl_json_t *typos = mdl_json_add_array(data, "typos");

    mdl_json_add_bool(data, "has_typos", list->found->nelts > 0);
    mdl_json_add_bool(data, "more_typos", list->more);
    for (int i = 0; i < list->found->nelts; i++) {
        const mdl_doubted_t *each = APR_ARRAY_IDX(list->found, i, const mdl_doubted_t *);
        mdl_json_t *to = mdl_json_add_object(typos, NULL);

        mdl_json_add_string(to, "order_id", each->storefront_order_id);
        mdl_json_add_string(to, "address", each->address);
        mdl_json_add_string(to, "meant", each->meant);
        mdl_present_date(to, "at", each->created_at);
    }
}

static void overview_add_tags(mdl_json_t *data, const mdl_attention_list_t *list)
{
    mdl_json_t *tags = mdl_json_add_array(data, "tags");

    mdl_json_add_bool(data, "has_tags", list->found->nelts > 0);
    mdl_json_add_bool(data, "more_tags", list->more);
    for (int i = 0; i < list->found->nelts; i++) {
        const mdl_low_tag_t *each = APR_ARRAY_IDX(list->found, i, const mdl_low_tag_t *);
        mdl_json_t *to = mdl_json_add_object(tags, NULL);

        mdl_json_add_int(to, "tag_id", each->id);
        mdl_json_add_string(to, "tag_name", each->name);
        mdl_json_add_int(to, "available", each->available);
        mdl_json_add_int(to, "threshold", each->threshold);
    }
}

static void overview_add_owed(mdl_json_t *data, const mdl_attention_list_t *list)
{
    mdl_json_t *tags = mdl_json_add_array(data, "owed_tags");

    mdl_json_add_bool(data, "has_owed", list->found->nelts > 0);
    mdl_json_add_bool(data, "more_owed", list->more);
    for (int i = 0; i < list->found->nelts; i++) {
        const mdl_owed_tag_t *each = APR_ARRAY_IDX(list->found, i, const mdl_owed_tag_t *);
        mdl_json_t *to = mdl_json_add_object(tags, NULL);

        mdl_json_add_int(to, "tag_id", each->id);
        mdl_json_add_string(to, "tag_name", each->name);
        overview_add_waiting(to, each->waiting);
    }
}

static void overview_add_webhooks(mdl_json_t *data, const apr_array_header_t *webhooks)
{
    mdl_json_t *list = mdl_json_add_array(data, "failing_webhooks");

    mdl_json_add_bool(data, "has_webhooks", webhooks->nelts > 0);
    for (int i = 0; i < webhooks->nelts; i++) {
        const mdl_webhook_t *each = APR_ARRAY_IDX(webhooks, i, const mdl_webhook_t *);
        mdl_json_t *to = mdl_json_add_object(list, NULL);

        mdl_json_add_int(to, "webhook_id", each->id);
        mdl_json_add_string(to, "url", each->url);
        mdl_json_add_bool(to, "disabled", each->disabled_at != 0);
        mdl_present_date(to, "at",
                         each->disabled_at != 0 ? each->disabled_at : each->failing_since);
    }
}

static void overview_add_own(mdl_json_t *data, const mdl_visit_t *visit, const overview_t *overview)
{
    apr_int64_t quota = visit->service->settings->storage_quota;

    mdl_queue_add(data, &overview->queue, 0);
    mdl_present_size(data, "taken", overview->storage.taken);
    if (quota != 0) {
        mdl_present_size(data, "quota", quota);
    }
}

static int overview_show(mdl_visit_t *visit)
{
    mdl_attention_t attention = {
        .shop_id = visit->shop->id, .since = apr_time_now() - RECENT, .limit = LINES};
    overview_t overview = {
        .attention = &attention,
        .role = visit->role,
        .queue = {.shop_id = visit->shop->id},
        .days = {.shop_id = visit->shop->id, .before = APR_INT64_MAX, .limit = MDL_OVERVIEW_DAYS}};
    apr_status_t rv = mdl_visit_read(visit, overview_effect, &overview);
    mdl_json_t *data;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_string(data, "seen", mdl_frame_shop_state(visit->shop, visit->r->pool));
    mdl_json_add_bool(data, "nobody_told", overview.recipients->nelts == 0);
    mdl_json_add_bool(data, "has_held", attention.held.found->nelts > 0);
    mdl_json_add_bool(data, "more_held", attention.held.more);
    mdl_orders_add_lines(data, "held_orders", attention.held.found, visit->r->pool);
    overview_add_help(data, &attention.help);
    overview_add_imports(data, &attention.imports);
    overview_add_emails(data, &attention.emails);
    overview_add_typos(data, &attention.typos);
    overview_add_tags(data, &attention.tags);
    overview_add_owed(data, &attention.owed);
    overview_add_webhooks(data, attention.webhooks);
    mdl_json_add_bool(data, "nothing",
                      attention.held.found->nelts + attention.help.found->nelts +
                              attention.imports.found->nelts + attention.emails.found->nelts +
                              attention.typos.found->nelts + attention.tags.found->nelts +
                              attention.owed.found->nelts + attention.webhooks->nelts ==
                          0);
    mdl_json_add_bool(data, "begins",
                      overview.role >= MDL_ROLE_STAFF && overview.storage.files == 0 &&
                          visit->shop->status == MDL_SHOP_APPROVED && visit->shop->blocked_at == 0);
    if (overview.role >= MDL_ROLE_OWNER) {
        overview_add_own(data, visit, &overview);
    }
    mdl_overview_add_days(data, overview.days.found, apr_time_now(), visit->r->pool);
    return mdl_frame_send(visit, HTTP_OK, "overview.html", data, NULL);
}

MDL_EFFECT(mdl_job_retry, mdl_job_control_t *)

/* Retries the import that the path names. */
static int overview_retry(mdl_visit_t *visit)
{
    mdl_job_control_t retry = {
        .id = visit->argument, .shop_id = visit->shop->id, .problem = &visit->problem};

    return mdl_frame_done(visit, mdl_visit_write(visit, mdl_job_retry_effect, &retry), "");
}

const mdl_page_t mdl_overview_pages[] = {
    {"{}/", .sees = MDL_ROLE_READ_ONLY, .get = overview_show},
    {"{}/jobs/{}/retry", "job", "retried", .acts = MDL_ROLE_STAFF, .post = overview_retry,
     .done = "import_retried"},
    {0},
};
