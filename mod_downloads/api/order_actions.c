#include "api/routes.h"

#include "api/members.h"
#include "api/order_view.h"
#include "core/audit.h"
#include "core/identifier.h"
#include "core/order/access.h"
#include "core/order/assignment.h"
#include "core/order/change.h"
#include "core/order/resend.h"

/* The ids, or NULL when the member is absent.  An empty list is refused, since a client may mean
   none or all by it. */
static const apr_array_header_t *order_action_ids(mdl_members_t *members, mdl_request_t *request,
                                                  const char *name)
{
    const apr_array_header_t *ids = mdl_members_ids(members, name);
    const mdl_json_t *given = mdl_json_member(request->body, name);

    if (mdl_json_type(given) == MDL_JSON_ARRAY && mdl_json_length(given) == 0) {
        mdl_members_fault(members, name, "wrong_length", "This member must not be empty.");
    }
    return ids->nelts > 0 ? ids : NULL;
}

static const char *order_action_reason(mdl_members_t *members)
{
    return mdl_members_text(members, "reason", MDL_OPTIONAL, MDL_REASON_MAX);
}

static void access_read(mdl_access_t *access, mdl_members_t *members, mdl_request_t *request)
{
    access->shop_id = request->caller.shop_id;
    access->storefront_order_id = request->parameters[0];
    access->key_id = request->caller.key_id;
    access->versions = request->versions;
    access->default_download_limit = request->service->settings->download_limit;
    access->problem = &request->problem;
    access->reason = order_action_reason(members);
}

/* Reports an invalid order id after the members' faults, like an unknown order. */
static apr_status_t order_action_end(mdl_members_t *members, mdl_request_t *request)
{
    apr_status_t rv = mdl_members_end(members);

    if (rv == APR_SUCCESS && !mdl_identifier_is_digits(request->parameters[0])) {
        return mdl_order_refuse_unknown(&request->problem);
    }
    return rv;
}

static apr_status_t access_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_access_t *access = apr_pcalloc(request->r->pool, sizeof *access);

    access_read(access, members, request);
    access->assignment_ids = order_action_ids(members, request, "assignment_ids");
    request->arg = access;
    return order_action_end(members, request);
}

static apr_status_t access_parse_reason(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_access_t *access = apr_pcalloc(request->r->pool, sizeof *access);

    access_read(access, members, request);
    request->arg = access;
    return order_action_end(members, request);
}

static void access_write(mdl_request_t *request)
{
    mdl_order_write(request->response, request, ((mdl_access_t *)request->arg)->order);
}

MDL_EFFECT(mdl_access_revoke, mdl_access_t *)
MDL_EFFECT(mdl_access_restore, mdl_access_t *)
MDL_EFFECT(mdl_access_approve, mdl_access_t *)
MDL_EFFECT(mdl_access_reject, mdl_access_t *)
MDL_EFFECT(mdl_access_rotate_link, mdl_access_t *)

static apr_status_t grant_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_access_grant_t *grant = apr_pcalloc(request->r->pool, sizeof *grant);

    access_read(&grant->access, members, request);
    grant->access.assignment_ids = order_action_ids(members, request, "assignment_ids");
    grant->file_ids = order_action_ids(members, request, "file_ids");
    grant->downloads = (int)mdl_members_int(members, "downloads", MDL_OPTIONAL, 1,
                                            MDL_GRANT_DOWNLOADS_MAX, 0);
    grant->extend_days = (int)mdl_members_int(members, "extend_days", MDL_OPTIONAL, 1,
                                              MDL_GRANT_DAYS_MAX, 0);
    if (!mdl_members_given(members, "downloads") && !mdl_members_given(members, "extend_days")) {
        mdl_members_fault(members, "downloads", "required",
                          "Give downloads, extend_days or both: there is nothing to grant.");
    }
    request->arg = grant;
    return order_action_end(members, request);
}

static void grant_write(mdl_request_t *request)
{
    mdl_order_write(request->response, request, ((mdl_access_grant_t *)request->arg)->access.order);
}

MDL_EFFECT(mdl_access_grant, mdl_access_grant_t *)

typedef struct {
    mdl_request_t *request;
    mdl_order_change_t change;
} change_t;

static apr_status_t change_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    change_t *own = apr_pcalloc(request->r->pool, sizeof *own);
    mdl_order_change_t *change = &own->change;

    own->request = request;
    access_read(&change->access, members, request);
    change->name = mdl_members_text(members, "name", MDL_NULLABLE, MDL_ORDER_NAME_MAX);
    change->name_given = mdl_members_given(members, "name");
    change->email = mdl_members_text(members, "email", MDL_NULLABLE, 254);
    change->email = mdl_members_email(members, "email", change->email);
    change->email_given = mdl_members_given(members, "email");
    change->rotate_link = mdl_members_bool(members, "rotate_link", 0);
    change->send_email = mdl_members_bool(members, "send_email", 0);
    change->mail_host = mdl_settings_public_host(request->service->settings, request->r->pool);
    if (change->rotate_link && !change->email_given) {
        mdl_members_fault(members, "email", "required",
                          "Give email: rotate_link goes with a new address.");
    }
    request->arg = own;
    return order_action_end(members, request);
}

static apr_status_t change_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    change_t *own = arg;
    apr_status_t rv = mdl_order_change(db, p, &own->change);

    own->request->retry_after = own->change.retry_after;
    return rv;
}

static void change_write(mdl_request_t *request)
{
    mdl_order_write(request->response, request, ((change_t *)request->arg)->change.access.order);
}

typedef struct {
    mdl_request_t *request;
    mdl_order_resend_t resend;
} resend_t;

static apr_status_t resend_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    resend_t *own = apr_pcalloc(request->r->pool, sizeof *own);

    own->request = request;
    own->resend.shop_id = request->caller.shop_id;
    own->resend.storefront_order_id = request->parameters[0];
    own->resend.key_id = request->caller.key_id;
    own->resend.versions = request->versions;
    own->resend.mail_host = mdl_settings_public_host(request->service->settings, request->r->pool);
    own->resend.default_download_limit = request->service->settings->download_limit;
    own->resend.problem = &request->problem;
    own->resend.reason = order_action_reason(members);
    own->resend.to = mdl_members_text(members, "email", MDL_OPTIONAL, 254);
    own->resend.to = mdl_members_email(members, "email", own->resend.to);
    request->arg = own;
    return order_action_end(members, request);
}

static apr_status_t resend_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    resend_t *own = arg;
    apr_status_t rv = mdl_order_resend(db, p, &own->resend);

    own->request->retry_after = own->resend.retry_after;
    return rv;
}

static void resend_write(mdl_request_t *request)
{
    request->status = 202;
    mdl_order_write(request->response, request, ((resend_t *)request->arg)->resend.order);
}

static apr_status_t quantity_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_access_quantity_t *change = apr_pcalloc(request->r->pool, sizeof *change);

    access_read(&change->access, members, request);
    change->assignment_id = mdl_identifier_parse(request->parameters[1]);
    change->quantity = (int)mdl_members_int(members, "quantity", MDL_REQUIRED, 0,
                                            MDL_ORDER_QUANTITY_MAX, 0);
    request->arg = change;
    return order_action_end(members, request);
}

MDL_EFFECT(mdl_access_set_quantity, mdl_access_quantity_t *)

static void quantity_write(mdl_request_t *request)
{
    const mdl_access_quantity_t *change = request->arg;

    mdl_assignment_write(request->response, request,
                         mdl_access_assignment(&change->access, change->assignment_id));
}

const mdl_route_t mdl_order_action_routes[] = {
    {"PATCH", "/orders/{}", "order", "changed", .versioned = 1, .parse = change_parse,
     .effect = change_effect, .write = change_write},
    {"POST", "/orders/{}/revoke", "order", "revoked", .versioned = 1, .optional_body = 1,
     .parse = access_parse, .effect = mdl_access_revoke_effect, .write = access_write},
    {"POST", "/orders/{}/restore", "order", "restored", .versioned = 1, .optional_body = 1,
     .parse = access_parse, .effect = mdl_access_restore_effect, .write = access_write},
    {"POST", "/orders/{}/approve", "order", "approved", .versioned = 1, .optional_body = 1,
     .parse = access_parse_reason, .effect = mdl_access_approve_effect, .write = access_write},
    {"POST", "/orders/{}/reject", "order", "rejected", .versioned = 1, .optional_body = 1,
     .parse = access_parse_reason, .effect = mdl_access_reject_effect, .write = access_write},
    {"POST", "/orders/{}/rotate-link", "order", "link_rotated", .versioned = 1, .optional_body = 1,
     .parse = access_parse_reason, .effect = mdl_access_rotate_link_effect, .write = access_write},
    {"POST", "/orders/{}/grant-downloads", "order", "downloads_granted", .versioned = 1,
     .parse = grant_parse, .effect = mdl_access_grant_effect, .write = grant_write},
    {"POST", "/orders/{}/resend", "order", "email_resent", .versioned = 1, .optional_body = 1,
     .parse = resend_parse, .effect = resend_effect, .write = resend_write},
    {"PATCH", "/orders/{}/assignments/{}", "order", "quantity_changed", .versioned = 1,
     .parse = quantity_parse, .effect = mdl_access_set_quantity_effect, .write = quantity_write},
    {0},
};
