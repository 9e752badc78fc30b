#include "settings/pages.h"

#include <apr_strings.h>

#include "base/mail/mime.h"
#include "base/text/utf8.h"
#include "core/identifier.h"
#include "core/ids.h"
#include "core/order/access.h"
#include "core/order/assignment.h"
#include "core/order/help_answer.h"
#include "core/order/resend.h"
#include "core/order/timeline.h"
#include "settings/frame.h"
#include "settings/order_address.h"
#include "settings/order_view.h"

static int order_show(mdl_visit_t *visit)
{
    return mdl_order_view_send(visit, HTTP_OK);
}

static apr_status_t order_check_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_visit_t *visit = arg;
    mdl_timeline_seen_t seen = {.shop_id = visit->shop->id,
                                .storefront_order_id = visit->argument,
                                .entry_id = apr_atoi64(mdl_visit_field(visit, "seen"))};

    return mdl_timeline_check_seen(db, &seen, &visit->problem, p);
}

/* Runs the form's effect, unless the order has changed since its page was shown. */
static int order_run(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg)
{
    apr_pool_t *p = visit->r->pool;
    apr_status_t rv = mdl_visit_write_seen(visit, order_check_effect, effect, arg);

    return rv == MDL_EPROBLEM
               ? mdl_order_view_send(visit, visit->problem.status)
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

/* The item that the form is about; NULL: the whole order. */
static apr_array_header_t *order_item(const mdl_visit_t *visit)
{
    const char *item = mdl_visit_field(visit, "item");

    return item != NULL ? mdl_ids_of(mdl_identifier_parse(item), visit->r->pool) : NULL;
}

static mdl_access_t order_access(mdl_visit_t *visit)
{
    return (mdl_access_t){.shop_id = visit->shop->id,
                          .storefront_order_id = visit->argument,
                          .user = visit->user,
                          .assignment_ids = order_item(visit),
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

    return order_reason(visit, &access.reason) ? order_run(visit, visit->page->effect, &access)
                                               : mdl_order_view_send(visit, HTTP_BAD_REQUEST);
}

MDL_EFFECT(mdl_help_answer, mdl_help_answer_t *)

static int order_refuse_help(mdl_visit_t *visit)
{
    mdl_help_answer_t answer = {
        .access = order_access(visit),
        .kind = MDL_HELP_REFUSE,
        .mail_host = mdl_settings_public_host(visit->service->settings, visit->r->pool)};

    return order_reason(visit, &answer.access.reason)
               ? order_run(visit, mdl_help_answer_effect, &answer)
               : mdl_order_view_send(visit, HTTP_BAD_REQUEST);
}

static mdl_order_resend_t order_new_email(mdl_visit_t *visit)
{
    return (mdl_order_resend_t){
        .shop_id = visit->shop->id,
        .storefront_order_id = visit->argument,
        .user = visit->user,
        .mail_host = mdl_settings_public_host(visit->service->settings, visit->r->pool),
        .default_download_limit = visit->service->settings->download_limit,
        .problem = &visit->problem};
}

typedef struct {
    mdl_access_grant_t grant;
    mdl_order_resend_t resend; /* after it */
    int emails;                /* whether it is wanted */
} order_grant_t;

static apr_status_t order_grant_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    order_grant_t *given = arg;
    apr_status_t rv = mdl_access_grant(db, p, &given->grant);

    return rv == APR_SUCCESS && given->emails ? mdl_order_resend(db, p, &given->resend) : rv;
}

static int order_grant(mdl_visit_t *visit)
{
    order_grant_t given = {
        .grant = {.access = order_access(visit),
                  .downloads = mdl_visit_number(mdl_visit_field(visit, "downloads"),
                                                MDL_GRANT_DOWNLOADS_MAX),
                  .extend_days = mdl_visit_number(mdl_visit_field(visit, "days"),
                                                  MDL_GRANT_DAYS_MAX)},
        .resend = order_new_email(visit),
        .emails = mdl_visit_field(visit, "email") != NULL};
    const mdl_access_grant_t *grant = &given.grant;

    if (grant->downloads < 0 || grant->extend_days < 0 ||
        grant->downloads + grant->extend_days == 0) {
        mdl_problem_set(
            &visit->problem, HTTP_BAD_REQUEST, "invalid_grant",
            "Give 1 to " APR_STRINGIFY(MDL_GRANT_DOWNLOADS_MAX) " downloads, 1 to " APR_STRINGIFY(
                MDL_GRANT_DAYS_MAX) " days, or both.");
        return mdl_order_view_send(visit, HTTP_BAD_REQUEST);
    }
    return order_reason(visit, &given.grant.access.reason)
               ? order_run(visit, order_grant_effect, &given)
               : mdl_order_view_send(visit, HTTP_BAD_REQUEST);
}

MDL_EFFECT(mdl_order_resend, mdl_order_resend_t *)

static int order_resend(mdl_visit_t *visit)
{
    const char *to = mdl_visit_field(visit, "to");
    mdl_order_resend_t resend = order_new_email(visit);

    resend.to = mdl_mime_address_of(to, visit->r->pool);
    if (to != NULL && resend.to == NULL) {
        mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_address",
                        "This is not an email address.");
        return mdl_order_view_send(visit, HTTP_BAD_REQUEST);
    }
    return order_reason(visit, &resend.reason) ? order_run(visit, mdl_order_resend_effect, &resend)
                                               : mdl_order_view_send(visit, HTTP_BAD_REQUEST);
}

MDL_EFFECT(mdl_access_set_quantity, mdl_access_quantity_t *)

static int order_set_quantity(mdl_visit_t *visit)
{
    mdl_access_quantity_t change = {
        .access = order_access(visit),
        .assignment_id = mdl_identifier_parse(mdl_visit_field(visit, "item")),
        .quantity = mdl_visit_number(mdl_visit_field(visit, "quantity"), MDL_ORDER_QUANTITY_MAX)};

    change.access.assignment_ids = NULL;
    if (change.quantity <= 0) {
        mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_quantity",
                        "The quantity is 1 to " APR_STRINGIFY(MDL_ORDER_QUANTITY_MAX) ".");
        return mdl_order_view_send(visit, HTTP_BAD_REQUEST);
    }
    return order_run(visit, mdl_access_set_quantity_effect, &change);
}

static int order_change_address(mdl_visit_t *visit)
{
    mdl_access_t access = order_access(visit);
    void *address = order_reason(visit, &access.reason) ? mdl_order_address_read(visit, &access)
                                                        : NULL;

    return address != NULL ? order_run(visit, mdl_order_address_effect, address)
                           : mdl_order_view_send(visit, HTTP_BAD_REQUEST);
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
    {"{}/orders/{}/refuse-help", "order", "help_refused", .acts = MDL_ROLE_STAFF,
     .post = order_refuse_help, .done = "help_refused"},
    {"{}/orders/{}/grant", "order", "downloads_granted", .acts = MDL_ROLE_STAFF,
     .post = order_grant, .done = "order_granted"},
    {"{}/orders/{}/resend", "order", "email_resent", .acts = MDL_ROLE_STAFF, .post = order_resend,
     .done = "email_resent"},
    {"{}/orders/{}/quantity", "order", "quantity_changed", .acts = MDL_ROLE_STAFF,
     .post = order_set_quantity, .done = "quantity_changed"},
    {"{}/orders/{}/address", "order", "address_changed", .acts = MDL_ROLE_STAFF,
     .post = order_change_address, .done = "address_changed"},
    {0},
};
