#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>

#include "base/mail/mime.h"
#include "base/names.h"
#include "base/text/present.h"
#include "base/text/utf8.h"
#include "child_storage.h"
#include "core/catalog/product.h"
#include "core/download/session.h"
#include "core/download/signed_url.h"
#include "core/order/access.h"
#include "core/order/diagnosis.h"
#include "core/order/timeline.h"
#include "core/order/resend.h"
#include "settings/frame.h"
#include "settings/order_address.h"
#include "settings/orders.h"

#define FILES_SHOWN 200

/* The actions of the timeline that the template has words for. */
static const char *const actions[] = {"assigned",
                                      "revoked",
                                      "restored",
                                      "downloads_granted",
                                      "email_resent",
                                      "link_rotated",
                                      "approved",
                                      "rejected",
                                      "license_keys_assigned",
                                      "fraud_held",
                                      "fraud_passed",
                                      "quantity_changed",
                                      "address_changed",
                                      NULL};

static const char *const check_states[] = {
    [MDL_CHECK_OK] = "ok", [MDL_CHECK_WARN] = "warning", [MDL_CHECK_FAIL] = "failure", NULL};

/* --- the page ------------------------------------------------------------------------------- */

MDL_EFFECT(mdl_order_find, mdl_order_find_t *)

static apr_status_t order_read(mdl_visit_t *visit, mdl_order_t **order)
{
    mdl_order_find_t find = {.shop_id = visit->shop->id,
                             .storefront_order_id = visit->argument,
                             .default_download_limit = visit->service->settings->download_limit,
                             .with_timeline = 1,
                             .with_lookup = 1};
    apr_status_t rv = mdl_visit_read(visit, mdl_order_find_effect, &find);

    *order = find.order;
    return rv;
}

static const mdl_order_file_t *order_file(const mdl_order_t *order, apr_int64_t asset_id)
{
    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *);

        for (int j = 0; j < each->files->nelts; j++) {
            const mdl_order_file_t *file = APR_ARRAY_IDX(each->files, j, mdl_order_file_t *);

            if (file->asset_id == asset_id) {
                return file;
            }
        }
    }
    return NULL;
}

static void order_add_files(mdl_json_t *item, const mdl_assignment_t *assignment, int *shown)
{
    mdl_json_t *files = mdl_json_add_array(item, "files");
    int i;

    for (i = 0; i < assignment->files->nelts && *shown < FILES_SHOWN; i++, (*shown)++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *);
        mdl_json_t *to = mdl_json_add_object(files, NULL);

        mdl_json_add_string(to, "title", file->title);
        mdl_json_add_string(to, "filename",
                            strcmp(file->filename, file->title) != 0 ? file->filename : NULL);
        mdl_frame_add_choice(to, mdl_asset_status_names, (int)file->status);
        mdl_json_add_int(to, "used", file->downloads.used);
        mdl_json_add_int_if(to, "limit", file->download_limit, file->download_limit != 0);
    }
    mdl_json_add_int_if(item, "more_files", assignment->files->nelts - i,
                        assignment->files->nelts > i);
}

static void order_add_items(mdl_json_t *to, const mdl_order_t *order, apr_time_t now, apr_pool_t *p)
{
    mdl_json_t *items = mdl_json_add_array(to, "items");
    int shown = 0;

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *);
        mdl_json_t *item = mdl_json_add_object(items, NULL);

        mdl_product_json(item, each->title, each->storefront_product_id, p);
        mdl_json_add_string(item, "variant_number",
                            *each->storefront_variant_id != '\0'
                                ? mdl_product_number(each->storefront_variant_id)
                                : NULL);
        mdl_json_add_int(item, "quantity", each->quantity);
        mdl_json_add_bool(item, "item_revoked", each->status == MDL_ASSIGNMENT_REVOKED);
        mdl_json_add_bool(item, "item_expired", each->expires_at != 0 && each->expires_at <= now);
        mdl_present_date(item, "expires", each->expires_at);
        mdl_json_add_int_if(item, "links", each->links->nelts, each->links->nelts > 0);
        mdl_json_add_int_if(item, "license_keys", each->license_keys->nelts,
                            each->license_keys->nelts > 0);
        mdl_json_add_int_if(item, "license_keys_pending", each->license_keys_pending,
                            each->license_keys_pending > 0);
        order_add_files(item, each, &shown);
    }
}

static void order_add_checks(mdl_json_t *to, const mdl_visit_t *visit, const mdl_order_t *order)
{
    const mdl_diagnosis_t *diagnosis = mdl_diagnosis_make(order, mdl_child_storage(),
                                                          visit->r->pool);
    mdl_json_t *checks = mdl_json_add_array(to, "checks");

    mdl_json_add_bool(to, "well", diagnosis->first_failure == MDL_CHECKS);
    for (int i = 0; i < MDL_CHECKS; i++) {
        mdl_json_t *check = mdl_json_add_object(checks, NULL);

        mdl_frame_add_choice(check, check_states, (int)diagnosis->checks[i].status);
        mdl_json_add_string(check, "message", diagnosis->checks[i].message);
        mdl_json_add_string(check, "finding", diagnosis->checks[i].finding);
        mdl_json_add_copy(check, "facts", diagnosis->checks[i].facts);
    }
}

static void order_add_downloads(mdl_json_t *to, const mdl_order_t *order)
{
    mdl_json_t *downloads = mdl_json_add_array(to, "downloads");

    mdl_json_add_bool(to, "has_downloads", order->downloads->nelts > 0);
    for (int i = 0; i < order->downloads->nelts; i++) {
        const mdl_session_view_t *each = APR_ARRAY_IDX(order->downloads, i,
                                                       const mdl_session_view_t *);
        const mdl_order_file_t *file = order_file(order, each->asset_id);
        mdl_json_t *download = mdl_json_add_object(downloads, NULL);

        mdl_json_add_string(download, "title", file != NULL ? file->title : NULL);
        mdl_json_add_bool(download, "archive", each->asset_id == 0);
        mdl_frame_add_choice(download, mdl_session_status_names, (int)each->status);
        mdl_present_size(download, "delivered", each->bytes);
        mdl_present_size(download, "size", each->size);
        mdl_present_date(download, "opened", each->opened_at);
    }
}

static void order_add_timeline(mdl_json_t *to, const mdl_order_t *order)
{
    mdl_json_t *events = mdl_json_add_array(to, "events");

    for (int i = 0; i < order->timeline->nelts; i++) {
        const mdl_timeline_entry_t *each = APR_ARRAY_IDX(order->timeline, i,
                                                         const mdl_timeline_entry_t *);
        mdl_json_t *event = mdl_json_add_object(events, NULL);

        mdl_frame_add_choice(mdl_json_add_object(event, "action"), actions,
                             mdl_names_find(actions, each->action));
        mdl_json_add_bool(event, "partly",
                          each->assignment_ids != NULL && strcmp(each->action, "assigned") != 0);
        mdl_json_add_string(event, "by_user", each->user);
        mdl_json_add_string(event, "by_key", each->key_id);
        mdl_json_add_string(event, "reason", each->reason);
        mdl_present_date(event, "at", each->created_at);
    }
}

static void order_add_email(mdl_json_t *to, const mdl_email_state_t *state)
{
    mdl_json_t *email = mdl_json_add_object(to, "email");

    mdl_frame_add_choice(email, mdl_email_status_names, (int)state->status);
    mdl_json_add_string(email, "to", state->to);
    mdl_json_add_string(email, "last_error", state->last_error);
    mdl_present_date(email, "sent_at", state->sent_at);
}

static int order_is_open(const mdl_order_t *order)
{
    return order->state.access == MDL_ORDER_ACTIVE && mdl_order_has_open(order, apr_time_now());
}

/* The page's URL is the right to download, so only those who may give access see it. */
static void order_add(mdl_json_t *to, const mdl_visit_t *visit, const mdl_order_t *order)
{
    apr_pool_t *p = visit->r->pool;
    apr_time_t now = apr_time_now();

    mdl_json_add_string(to, "order_id", order->storefront_order_id);
    mdl_json_add_string(to, "order_name", order->name);
    mdl_frame_add_choice(to, mdl_order_access_names, (int)order->state.access);
    mdl_json_add_bool(to, "open", order_is_open(order));
    mdl_json_add_string(to, "reason", order->access_reason);
    mdl_present_date(to, "created", order->created_at);
    mdl_orders_add_customer(to, order->customer.first_name, order->customer.last_name,
                            order->address, order->customer.storefront_customer_id, p);
    if (visit->role >= MDL_ROLE_STAFF) {
        mdl_json_add_string(to, "page_url",
                            mdl_signed_url_page(visit->service->secret,
                                                visit->service->settings->public_url,
                                                order->page_id, p));
    }
    if (order->timeline->nelts > 0) {
        mdl_json_add_int(to, "seen",
                         APR_ARRAY_IDX(order->timeline, 0, const mdl_timeline_entry_t *)->id);
    }
    order_add_email(to, &order->email);
    order_add_items(to, order, now, p);
    order_add_checks(to, visit, order);
    order_add_downloads(to, order);
    order_add_timeline(to, order);
}

#define IN(access) (1u << MDL_ORDER_##access)

/* The forms, in the order in which they are shown. */
static const struct {
    const char *path; /* below the order's */
    const char *action;
    unsigned states; /* in which it is shown; 0: while something can be downloaded */
    int takes_away;  /* the customer reads the reason */
} forms[] = {
    {"approve", "approved", IN(HELD) | IN(REJECTED), 0},
    {"reject", "rejected", IN(HELD), 1},
    {"grant", "downloads_granted", ~0u, 0},
    {"resend", "email_resent", 0, 0},
    {"rotate-link", "link_rotated", ~0u, 0},
    {"revoke", "revoked", IN(ACTIVE), 1},
    {"restore", "restored", IN(REVOKED), 0},
};

/* Adds what was typed into a form that is shown again. */
static void form_add_typed(mdl_json_t *to, const mdl_visit_t *visit)
{
    static const char *const fields[] = {"reason", "to", "downloads", "days"};

    mdl_json_add_bool(to, "typed", 1);
    for (apr_size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        mdl_json_add_string(to, apr_pstrcat(visit->r->pool, "typed_", fields[i], NULL),
                            mdl_visit_field(visit, fields[i]));
    }
}

static void order_add_forms(mdl_json_t *to, const mdl_visit_t *visit, const mdl_order_t *order)
{
    mdl_json_t *array = mdl_json_add_array(to, "forms");
    int open = order_is_open(order);

    for (apr_size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        mdl_json_t *form;

        if (forms[i].states != 0 ? !(forms[i].states & (1u << order->state.access)) : !open) {
            continue;
        }
        form = mdl_json_add_object(array, NULL);
        mdl_json_add_string(form, "path", forms[i].path);
        mdl_json_add_string(form, "action", forms[i].action);
        mdl_json_add_bool(form, forms[i].action, 1);
        mdl_json_add_bool(form, "takes_away", forms[i].takes_away);
        if (visit->fields != NULL && strcmp(visit->audit.action, forms[i].action) == 0) {
            form_add_typed(form, visit);
        }
    }
}

static int order_send(mdl_visit_t *visit, int status)
{
    mdl_order_t *order;
    mdl_json_t *data;
    apr_status_t rv = order_read(visit, &order);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    mdl_visit_end(visit);
    data = mdl_frame_data(visit);
    order_add(data, visit, order);
    order_add_forms(data, visit, order);
    mdl_order_address_add(data, visit, order);
    return mdl_frame_send(visit, status, "order.html", data, NULL);
}

static int order_show(mdl_visit_t *visit)
{
    return order_send(visit, HTTP_OK);
}

/* --- its forms ------------------------------------------------------------------------------ */

static apr_status_t order_check_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_visit_t *visit = arg;
    mdl_timeline_seen_t seen = {.shop_id = visit->shop->id,
                                .storefront_order_id = visit->argument,
                                .entry_id = apr_atoi64(mdl_visit_field(visit, "seen"))};

    return mdl_timeline_check_seen(db, &seen, &visit->problem, p);
}

/* Runs the effect of the form, unless the order has changed since its page was shown. */
static int order_run(mdl_visit_t *visit, void *arg)
{
    apr_pool_t *p = visit->r->pool;
    apr_status_t rv = mdl_visit_write_seen(visit, order_check_effect, visit->page->effect, arg);

    return rv == MDL_EPROBLEM
               ? order_send(visit, visit->problem.status)
               : mdl_frame_done(
                     visit, rv,
                     apr_pstrcat(p, "orders/", ap_escape_path_segment(p, visit->argument), NULL));
}

/* The reason that was typed; false when it is too long. */
static int order_reason(mdl_visit_t *visit, const char **reason)
{
    *reason = visit->audit.detail = mdl_visit_field(visit, "reason");
    if (*reason == NULL || mdl_utf8_is_text(*reason, MDL_REASON_MAX)) {
        return 1;
    }
    mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_reason",
                    "A reason has 1 to " APR_STRINGIFY(MDL_REASON_MAX) " characters, in one line.");
    return 0;
}

static mdl_access_t order_access(mdl_visit_t *visit)
{
    return (mdl_access_t){.shop_id = visit->shop->id,
                          .storefront_order_id = visit->argument,
                          .user = visit->user,
                          .default_download_limit = visit->service->settings->download_limit,
                          .problem = &visit->problem};
}

MDL_EFFECT(mdl_access_revoke, mdl_access_t *)
MDL_EFFECT(mdl_access_restore, mdl_access_t *)
MDL_EFFECT(mdl_access_approve, mdl_access_t *)
MDL_EFFECT(mdl_access_reject, mdl_access_t *)
MDL_EFFECT(mdl_access_rotate_link, mdl_access_t *)

/* A form whose only field is the reason. */
static int order_act(mdl_visit_t *visit)
{
    mdl_access_t access = order_access(visit);

    return order_reason(visit, &access.reason) ? order_run(visit, &access)
                                               : order_send(visit, HTTP_BAD_REQUEST);
}

MDL_EFFECT(mdl_access_grant, mdl_access_grant_t *)

static int order_grant(mdl_visit_t *visit)
{
    mdl_access_grant_t grant = {
        .access = order_access(visit),
        .downloads = mdl_visit_number(mdl_visit_field(visit, "downloads"), MDL_GRANT_DOWNLOADS_MAX),
        .extend_days = mdl_visit_number(mdl_visit_field(visit, "days"), MDL_GRANT_DAYS_MAX)};

    if (grant.downloads < 0 || grant.extend_days < 0 || grant.downloads + grant.extend_days == 0) {
        mdl_problem_set(
            &visit->problem, HTTP_BAD_REQUEST, "invalid_grant",
            "Give 1 to " APR_STRINGIFY(MDL_GRANT_DOWNLOADS_MAX) " downloads, 1 to " APR_STRINGIFY(
                MDL_GRANT_DAYS_MAX) " days, or both.");
        return order_send(visit, HTTP_BAD_REQUEST);
    }
    return order_reason(visit, &grant.access.reason) ? order_run(visit, &grant)
                                                     : order_send(visit, HTTP_BAD_REQUEST);
}

MDL_EFFECT(mdl_order_resend, mdl_order_resend_t *)

static int order_resend(mdl_visit_t *visit)
{
    const char *to = mdl_visit_field(visit, "to");
    mdl_order_resend_t resend = {
        .shop_id = visit->shop->id,
        .storefront_order_id = visit->argument,
        .user = visit->user,
        .to = mdl_mime_address_of(to, visit->r->pool),
        .mail_host = mdl_settings_public_host(visit->service->settings, visit->r->pool),
        .default_download_limit = visit->service->settings->download_limit,
        .problem = &visit->problem};

    if (to != NULL && resend.to == NULL) {
        mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_address",
                        "This is not an email address.");
        return order_send(visit, HTTP_BAD_REQUEST);
    }
    return order_reason(visit, &resend.reason) ? order_run(visit, &resend)
                                               : order_send(visit, HTTP_BAD_REQUEST);
}

static int order_change_address(mdl_visit_t *visit)
{
    mdl_access_t access = order_access(visit);
    void *address = order_reason(visit, &access.reason) ? mdl_order_address_read(visit, &access)
                                                        : NULL;

    return address != NULL ? order_run(visit, address) : order_send(visit, HTTP_BAD_REQUEST);
}

const mdl_page_t mdl_order_pages[] = {
    {"{}/orders/{}", .sees = MDL_ROLE_READ_ONLY, .get = order_show},
    {"{}/orders/{}/revoke", "order", "revoked", .acts = MDL_ROLE_STAFF, .post = order_act,
     .effect = mdl_access_revoke_effect, .done = "order_revoked"},
    {"{}/orders/{}/restore", "order", "restored", .acts = MDL_ROLE_STAFF, .post = order_act,
     .effect = mdl_access_restore_effect, .done = "order_restored"},
    {"{}/orders/{}/approve", "order", "approved", .acts = MDL_ROLE_STAFF, .post = order_act,
     .effect = mdl_access_approve_effect, .done = "order_approved"},
    {"{}/orders/{}/reject", "order", "rejected", .acts = MDL_ROLE_STAFF, .post = order_act,
     .effect = mdl_access_reject_effect, .done = "order_rejected"},
    {"{}/orders/{}/rotate-link", "order", "link_rotated", .acts = MDL_ROLE_STAFF, .post = order_act,
     .effect = mdl_access_rotate_link_effect, .done = "link_rotated"},
    {"{}/orders/{}/grant", "order", "downloads_granted", .acts = MDL_ROLE_STAFF,
     .post = order_grant, .effect = mdl_access_grant_effect, .done = "order_granted"},
    {"{}/orders/{}/resend", "order", "email_resent", .acts = MDL_ROLE_STAFF, .post = order_resend,
     .effect = mdl_order_resend_effect, .done = "email_resent"},
    {"{}/orders/{}/address", "order", "address_changed", .acts = MDL_ROLE_STAFF,
     .post = order_change_address, .effect = mdl_order_address_effect, .done = "address_changed"},
    {0},
};
