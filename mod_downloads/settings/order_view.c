#include "settings/order_view.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/present.h"
#include "child_storage.h"
#include "core/catalog/license_seal.h"
#include "core/catalog/product.h"
#include "core/download/session.h"
#include "core/download/signed_url.h"
#include "core/identifier.h"
#include "core/order/doubt.h"
#include "core/order/help.h"
#include "core/order/history.h"
#include "core/order/timeline.h"
#include "core/order/verdict.h"
#include "settings/frame.h"
#include "settings/order_address.h"
#include "settings/order_story.h"
#include "settings/orders.h"

#define FILES_SHOWN  200 /* of all items together; the same for license keys */
#define FILES_OPEN   10  /* of an item; the others are folded */
#define EMAILS_SHOWN 50
#define EXTEND_DAYS  30 /* what the button gives */
#define DAY          apr_time_from_sec(86400)

static const char *const check_states[] = {
    [MDL_CHECK_OK] = "ok", [MDL_CHECK_WARN] = "warning", [MDL_CHECK_FAIL] = "failure", NULL};

typedef struct {
    mdl_order_find_t find;
    const char *meant; /* out: mdl_order_find_meant */
} order_shown_t;

/* Also reads the customer's request for help. */
static apr_status_t order_find_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    order_shown_t *shown = arg;
    apr_status_t rv = mdl_order_find(db, p, &shown->find);

    if (rv == APR_SUCCESS) {
        rv = mdl_help_read(db, shown->find.order->id, &shown->find.order->help, p);
    }
    return rv == APR_SUCCESS ? mdl_order_find_meant(db, shown->find.order, &shown->meant, p) : rv;
}

MDL_EFFECT(mdl_history_emails, mdl_history_t *)

static apr_status_t order_read(mdl_visit_t *visit, order_shown_t *shown,
                               apr_array_header_t **emails)
{
    mdl_history_t history = {
        .page = {.shop_id = visit->shop->id, .before = APR_INT64_MAX, .limit = EMAILS_SHOWN},
        .storefront_order_id = visit->argument,
        .problem = &visit->problem};
    apr_status_t rv;

    shown->find = (mdl_order_find_t){
        .shop_id = visit->shop->id,
        .storefront_order_id = visit->argument,
        .default_download_limit = visit->service->settings->download_limit,
        .with_timeline = 1,
        .with_lookup = 1};
    rv = mdl_visit_read(visit, order_find_effect, shown);
    if (rv == APR_SUCCESS) {
        rv = mdl_visit_read(visit, mdl_history_emails_effect, &history);
    }
    *emails = history.page.found;
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

static void order_add_file(mdl_json_t *to, const mdl_order_file_t *file)
{
    mdl_json_add_string(to, "title", file->title);
    mdl_json_add_string(to, "filename",
                        strcmp(file->filename, file->title) != 0 ? file->filename : NULL);
    mdl_frame_add_choice(to, mdl_asset_status_names, (int)file->status);
    mdl_json_add_int(to, "used", file->downloads.used);
    mdl_json_add_int_if(to, "limit", file->download_limit, file->download_limit != 0);
}

static void order_add_files(mdl_json_t *item, const mdl_assignment_t *assignment, int *shown)
{
    mdl_json_t *open = mdl_json_add_array(item, "files");
    mdl_json_t *folded = mdl_json_add_array(item, "folded_files");
    int all = assignment->files->nelts, i;

    for (i = 0; i < all && *shown < FILES_SHOWN; i++, (*shown)++) {
        order_add_file(mdl_json_add_object(i < FILES_OPEN ? open : folded, NULL),
                       APR_ARRAY_IDX(assignment->files, i, const mdl_order_file_t *));
    }
    mdl_json_add_bool(item, "has_files", all > 0);
    mdl_json_add_int_if(item, "folded", i - FILES_OPEN, i > FILES_OPEN);
    mdl_json_add_int_if(item, "more_files", all - i, all > i);
}

/* Adds the keys themselves only for those who may see them. */
static void order_add_keys(mdl_json_t *item, const mdl_visit_t *visit,
                           const mdl_assignment_t *assignment, int *shown)
{
    int all = assignment->license_keys->nelts, i;
    const apr_array_header_t *keys = NULL;
    mdl_json_t *to;

    mdl_json_add_int_if(item, "license_keys", all, all > 0);
    mdl_json_add_int_if(item, "license_keys_pending", assignment->license_keys_pending,
                        assignment->license_keys_pending > 0);
    if (all > 0 && visit->role >= MDL_ROLE_STAFF) {
        keys = mdl_license_keys_open(visit->service->secret, assignment->license_keys,
                                     visit->r->pool);
    }
    if (keys == NULL) {
        return;
    }
    mdl_json_add_bool(item, "has_keys", 1);
    to = mdl_json_add_array(item, "keys");
    for (i = 0; i < all && *shown < FILES_SHOWN; i++, (*shown)++) {
        mdl_json_add_string(mdl_json_add_object(to, NULL), "key",
                            APR_ARRAY_IDX(keys, i, const char *));
    }
    mdl_json_add_int_if(item, "more_keys", all - i, all > i);
}

/* Adds what was typed into a form that is shown again. */
static void form_add_typed(mdl_json_t *to, const mdl_visit_t *visit)
{
    static const char *const fields[] = {"reason", "to", "downloads", "days", "quantity"};

    mdl_json_add_bool(to, "typed", 1);
    for (apr_size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        mdl_json_add_string(to, apr_pstrcat(visit->r->pool, "typed_", fields[i], NULL),
                            mdl_visit_field(visit, fields[i]));
    }
}

/* The same of a form of one item, and which one it was, since an item has several. */
static void item_add_typed(mdl_json_t *item, const mdl_visit_t *visit, apr_int64_t id)
{
    const char *field = mdl_visit_field(visit, "item");

    if (field != NULL && mdl_identifier_parse(field) == id) {
        form_add_typed(item, visit);
        mdl_json_add_bool(item, "typed_into_quantity",
                          strcmp(visit->audit.action, "quantity_changed") == 0);
        mdl_json_add_bool(item, "typed_into_grant",
                          strcmp(visit->audit.action, "downloads_granted") == 0);
    }
}

static void order_add_items(mdl_json_t *to, const mdl_visit_t *visit, const mdl_order_t *order,
                            apr_time_t now)
{
    mdl_json_t *items = mdl_json_add_array(to, "items");
    int files = 0, keys = 0;

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *);
        mdl_json_t *item = mdl_json_add_object(items, NULL);
        int expired = each->expires_at != 0 && each->expires_at <= now;

        mdl_json_add_int(item, "item", each->id);
        mdl_product_json(item, each->title, each->storefront_product_id, visit->r->pool);
        mdl_json_add_string(item, "variant_number",
                            *each->storefront_variant_id != '\0'
                                ? mdl_product_number(each->storefront_variant_id)
                                : NULL);
        mdl_json_add_int(item, "quantity", each->quantity);
        mdl_json_add_bool(item, "item_revoked", each->status == MDL_ASSIGNMENT_REVOKED);
        mdl_json_add_bool(item, "item_expired", expired);
        mdl_json_add_int(item, "give_downloads", !expired);
        mdl_json_add_int(item, "give_days", expired ? EXTEND_DAYS : 0);
        mdl_present_date(item, "expires", each->expires_at);
        mdl_json_add_int_if(item, "links", each->links->nelts, each->links->nelts > 0);
        item_add_typed(item, visit, each->id);
        order_add_keys(item, visit, each, &keys);
        order_add_files(item, each, &files);
    }
}

static void order_add_check(mdl_json_t *to, const mdl_check_t *check)
{
    mdl_frame_add_choice(to, check_states, (int)check->status);
    mdl_json_add_string(to, "message", check->message);
    mdl_json_add_string(to, "finding", check->finding);
    mdl_json_add_copy(to, "facts", check->facts);
}

/* Whether a check only repeats what the verdict is about: the review is why the access is held. */
static int check_is_said(int check, mdl_check_name_t about)
{
    return check == (int)about || (check == MDL_CHECK_ACCESS && about == MDL_CHECK_FRAUD);
}

/* Adds the checks that the verdict does not say: those that did not pass, and those that did. */
static void order_add_checks(mdl_json_t *to, const mdl_diagnosis_t *diagnosis,
                             mdl_check_name_t about)
{
    mdl_json_t *faults = mdl_json_add_array(to, "faults");
    mdl_json_t *passed = mdl_json_add_array(to, "passed");

    for (int i = 0; i < MDL_CHECKS; i++) {
        const mdl_check_t *each = &diagnosis->checks[i];

        if (each->status == MDL_CHECK_OK) {
            order_add_check(mdl_json_add_object(passed, NULL), each);
        } else if (!check_is_said(i, about)) {
            order_add_check(mdl_json_add_object(faults, NULL), each);
        }
    }
    mdl_json_add_bool(to, "has_faults", mdl_json_length(faults) > 0);
    mdl_json_add_int(to, "count_passed", (apr_int64_t)mdl_json_length(passed));
}

/* Adds whether the customer can download, why not, and what the forms should give.  Returns what
   the staff can do. */
static mdl_remedy_t order_add_verdict(mdl_json_t *to, const mdl_visit_t *visit,
                                      const mdl_order_t *order, apr_time_t now)
{
    const mdl_diagnosis_t *diagnosis = mdl_diagnosis_make(order, mdl_child_storage(),
                                                          visit->r->pool);
    mdl_verdict_t verdict = mdl_verdict_of(order, diagnosis);
    int extend = verdict.remedy == MDL_REMEDY_EXTEND;

    mdl_frame_add_choice(mdl_json_add_object(to, "outcome"), mdl_outcome_names,
                         (int)verdict.outcome);
    if (verdict.about < MDL_CHECKS) {
        order_add_check(mdl_json_add_object(to, "about"), &diagnosis->checks[verdict.about]);
    }
    mdl_frame_add_choice(mdl_json_add_object(to, "remedy"), mdl_remedy_names, (int)verdict.remedy);
    mdl_json_add_int(to, "give_downloads", !extend);
    mdl_json_add_int(to, "give_days", extend ? EXTEND_DAYS : 0);
    mdl_present_date(to, "extends_to", now + EXTEND_DAYS * DAY);
    order_add_checks(to, diagnosis, verdict.about);
    return verdict.remedy;
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

static int order_is_open(const mdl_order_t *order)
{
    return order->state.access == MDL_ORDER_ACTIVE && mdl_order_has_open(order, apr_time_now());
}

/* The page's URL is the right to download, so only those who may give access see it. */
static void order_add(mdl_json_t *to, const mdl_visit_t *visit, const mdl_order_t *order,
                      const char *meant)
{
    apr_pool_t *p = visit->r->pool;
    apr_time_t now = apr_time_now();

    mdl_json_add_string(to, "order_id", order->storefront_order_id);
    mdl_json_add_string(to, "order_name", order->name);
    mdl_frame_add_choice(to, mdl_order_access_names, (int)order->state.access);
    mdl_json_add_bool(to, "open", order_is_open(order));
    mdl_json_add_bool(to, "blocked", order->shop_blocked);
    mdl_json_add_string(to, "reason", order->access_reason);
    mdl_present_date(to, "created", order->created_at);
    mdl_present_date(to, "order_expires", order->expires_at);
    mdl_orders_add_customer(to, order->customer.first_name, order->customer.last_name,
                            order->address, order->customer.storefront_customer_id, p);
    if (visit->role >= MDL_ROLE_STAFF) {
        mdl_json_add_int(to, "customer", order->customer.id);
        mdl_json_add_string(to, "page_url",
                            mdl_signed_url_page(visit->service->secret,
                                                visit->service->settings->public_url,
                                                order->page_id, p));
    }
    if (order->timeline->nelts > 0) {
        mdl_json_add_int(to, "seen",
                         APR_ARRAY_IDX(order->timeline, 0, const mdl_timeline_entry_t *)->id);
    }
    mdl_order_address_add(to, visit, order, meant,
                          order_add_verdict(to, visit, order, now) == MDL_REMEDY_ADDRESS);
    if (mdl_help_waits(&order->help)) {
        mdl_present_date(to, "help_asked", order->help.asked_at);
    }
    order_add_items(to, visit, order, now);
    order_add_downloads(to, order);
}

#define REFUSED_HELP "help_refused" /* shown while the customer waits for help */

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
    {"refuse-help", REFUSED_HELP, ~0u, 1},
    {"revoke", "revoked", IN(ACTIVE), 1},
    {"restore", "restored", IN(REVOKED), 0},
};

static void order_add_forms(mdl_json_t *to, const mdl_visit_t *visit, const mdl_order_t *order)
{
    mdl_json_t *array = mdl_json_add_array(to, "forms");
    int open = order_is_open(order);

    for (apr_size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        mdl_json_t *form;

        if (forms[i].states != 0 ? !(forms[i].states & (1u << order->state.access)) : !open) {
            continue;
        }
        if (strcmp(forms[i].action, REFUSED_HELP) == 0 && !mdl_help_waits(&order->help)) {
            continue;
        }
        form = mdl_json_add_object(array, NULL);
        mdl_json_add_string(form, "path", forms[i].path);
        mdl_json_add_string(form, "action", forms[i].action);
        mdl_json_add_bool(form, forms[i].action, 1);
        mdl_json_add_bool(form, "takes_away", forms[i].takes_away);
        if (visit->fields != NULL && mdl_visit_field(visit, "item") == NULL &&
            strcmp(visit->audit.action, forms[i].action) == 0) {
            form_add_typed(form, visit);
        }
    }
}

int mdl_order_view_send(mdl_visit_t *visit, int status)
{
    order_shown_t shown;
    const mdl_order_t *order;
    apr_array_header_t *emails;
    mdl_json_t *data;
    apr_status_t rv = order_read(visit, &shown, &emails);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    mdl_visit_end(visit);
    order = shown.find.order;
    data = mdl_frame_data(visit);
    order_add(data, visit, order, shown.meant);
    mdl_order_story_add(data, order, emails, visit->r->pool);
    order_add_forms(data, visit, order);
    return mdl_frame_send(visit, status, "order.html", data, NULL);
}
