#include "delivery/help_answer.h"

#include <apr_strings.h>

#include "base/names.h"
#include "base/text/present.h"
#include "base/text/utf8.h"
#include "child_storage.h"
#include "connection.h"
#include "core/download/signed_url.h"
#include "core/order/diagnosis.h"
#include "core/order/help_answer.h"
#include "core/shop/member.h"
#include "core/write.h"
#include "delivery/customer.h"
#include "delivery/view.h"
#include "request_body.h"

#define FORM_MAX_LENGTH 8192
#define FORM_MAX_FIELDS 8

typedef struct {
    request_rec *r;
    const mdl_service_t *service;
    const char *token;
    mdl_signed_help_t link;
    mdl_help_request_t request;
    mdl_order_t *order;
    mdl_help_answer_t answer; /* of the form */
    mdl_problem_t problem;    /* why the answer was refused */
    mdl_connection_t *connection;
} page_t;

/* Whoever has lost the role since the link was sent has lost the link, too. */
static apr_status_t check_role(mdl_db_t *db, const mdl_signed_help_t *link, apr_pool_t *p)
{
    mdl_role_t role = MDL_ROLE_READ_ONLY;
    apr_status_t rv = mdl_member_role(db, link->user, link->shop_id, &role, p);

    return rv == APR_ENOENT || (rv == APR_SUCCESS && role < MDL_ROLE_STAFF) ? MDL_EPROBLEM : rv;
}

static apr_status_t page_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    page_t *page = arg;
    mdl_order_find_t find = {.shop_id = page->link.shop_id,
                             .default_download_limit = page->service->settings->download_limit,
                             .with_lookup = 1};
    apr_status_t rv = mdl_help_find(db, page->link.shop_id, page->link.request_id, &page->request,
                                    p);

    if (rv != APR_SUCCESS || (rv = check_role(db, &page->link, p)) != APR_SUCCESS) {
        return rv;
    }
    find.storefront_order_id = page->request.storefront_order_id;
    rv = mdl_order_find(db, p, &find);
    page->order = find.order;
    return rv == APR_SUCCESS && page->order->shop_blocked ? APR_EACCES : rv;
}

static void page_close(page_t *page)
{
    mdl_connection_close(page->connection);
    page->connection = NULL;
}

/* Reads what the page shows.  APR_ENOENT when the token is forged or there is no such request,
   MDL_EPROBLEM when the member may not answer. */
static apr_status_t page_read(page_t *page)
{
    request_rec *r = page->r;
    apr_status_t rv;

    if (mdl_signed_url_help_read(page->service->secret, page->token, &page->link, r->pool) !=
        APR_SUCCESS) {
        mdl_customer_forged(r, page->service);
        return APR_ENOENT;
    }
    if ((rv = mdl_customer_charge(r, page->service, page->token)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_connection_run(&page->connection, r, mdl_db_snapshot, page_read_effect, page);
    page_close(page);
    return rv;
}

/* The check that says why the customer can't download: the first that fails, or else warns. */
static const mdl_check_t *page_fault(const page_t *page)
{
    const mdl_diagnosis_t *diagnosis = mdl_diagnosis_make(page->order, mdl_child_storage(),
                                                          page->r->pool);
    const mdl_check_t *fault = NULL;

    for (int i = 0; i < MDL_CHECKS; i++) {
        const mdl_check_t *check = &diagnosis->checks[i];

        if (check->status != MDL_CHECK_OK && (fault == NULL || check->status > fault->status)) {
            fault = check;
        }
    }
    return fault;
}

static int order_ends(const mdl_order_t *order)
{
    for (int i = 0; i < order->assignments->nelts; i++) {
        if (APR_ARRAY_IDX(order->assignments, i, const mdl_assignment_t *)->expires_at != 0) {
            return 1;
        }
    }
    return 0;
}

static void add_choices(mdl_json_t *asks, const page_t *page)
{
    const mdl_settings_t *settings = page->service->settings;
    const mdl_check_t *fault = page_fault(page);
    mdl_json_t *of;

    if (fault != NULL) {
        of = mdl_json_add_object(asks, "fault");
        mdl_json_add_string(of, "finding", fault->finding);
        mdl_json_add_string(of, "message", fault->message);
        mdl_json_add_copy(of, "facts", fault->facts);
    }
    mdl_json_add_bool(asks, "active", page->order->state.access == MDL_ORDER_ACTIVE);
    mdl_json_add_bool(asks, "ends", order_ends(page->order));
    mdl_json_add_bool(asks, "has_address", page->order->address != NULL);
    if (page->problem.code != NULL) {
        of = mdl_json_add_object(asks, "problem");
        mdl_json_add_bool(of, page->problem.code, 1);
        mdl_json_add_string(of, "message", page->problem.message);
    }
    if (settings->settings_url != NULL) {
        mdl_json_add_string(
            asks, "order_url",
            apr_psprintf(page->r->pool, "%s/%" APR_INT64_T_FMT "/orders/%s", settings->settings_url,
                         page->link.shop_id,
                         ap_escape_path_segment(page->r->pool, page->request.storefront_order_id)));
    }
}

/* Shows the page in the request's state, or in the state "done" after an answer. */
static int page_show(page_t *page, int status, int done)
{
    mdl_json_t *data = mdl_json_object(page->r->pool);
    const char *state = done ? "done" : mdl_help_state_names[page->request.state];
    mdl_json_t *of = mdl_json_add_object(data, state);

    mdl_json_add_string(data, "shop_name", page->order->shop_name);
    mdl_json_add_string(data, "order_id", mdl_order_called(page->order));
    mdl_json_add_string(
        data, "action",
        apr_pstrcat(page->r->pool, mdl_view_public_path(), "/h/", page->token, NULL));
    if (done) {
        mdl_json_add_bool(of, page->answer.kind == MDL_HELP_REFUSE ? "refused" : "granted", 1);
    } else if (page->request.state == MDL_HELP_ASKED) {
        mdl_present_date(data, "when", page->request.asked_at);
        add_choices(of, page);
    }
    return mdl_view_help(page->r, status, data);
}

static int page_failure(page_t *page, apr_status_t rv)
{
    mdl_json_t *data = mdl_json_object(page->r->pool);

    if (rv != APR_ENOENT && rv != MDL_EPROBLEM) {
        return mdl_view_failure(page->r, rv, "page_not_found");
    }
    mdl_json_add_bool(data, rv == APR_ENOENT ? "unknown" : "not_allowed", 1);
    return mdl_view_help(page->r, rv == APR_ENOENT ? HTTP_NOT_FOUND : HTTP_FORBIDDEN, data);
}

int mdl_help_answer_show(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    apr_status_t rv = page_read(&page);

    if (rv != APR_SUCCESS) {
        return page_failure(&page, rv);
    }
    return page_show(&page, page.request.state == MDL_HELP_LAPSED ? HTTP_GONE : HTTP_OK, 0);
}

/* Reads the form into the answer; returns OK, or the status of a problem. */
static int page_read_form(page_t *page)
{
    apr_table_t *fields;
    const char *reason, **into = &page->answer.access.reason;
    int kind, status = mdl_request_body_form(page->r, page->token, FORM_MAX_LENGTH, FORM_MAX_FIELDS,
                                             &fields);

    if (status != OK) {
        return status;
    }
    kind = mdl_names_find(mdl_help_answer_names, apr_table_get(fields, "answer"));
    reason = apr_table_get(fields, "reason");
    *into = reason != NULL && mdl_utf8_valid(reason) ? mdl_utf8_trimmed(reason, page->r->pool) : "";
    if (**into == '\0' || kind != MDL_HELP_REFUSE) {
        *into = NULL;
    }
    if (kind < 0 || (*into != NULL && !mdl_utf8_is_text(*into, MDL_REASON_MAX))) {
        mdl_problem_set(
            &page->problem, 400, "invalid_reason",
            "A reason has 1 to " APR_STRINGIFY(MDL_REASON_MAX) " characters, in one line.");
        return HTTP_BAD_REQUEST;
    }
    page->answer.kind = (mdl_help_answer_kind_t)kind;
    return OK;
}

static apr_status_t page_answer_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    page_t *page = arg;
    apr_status_t rv = check_role(db, &page->link, p);

    page->answer.access.versions = NULL;
    return rv == APR_SUCCESS ? mdl_help_answer(db, p, &page->answer) : rv;
}

MDL_EFFECT(mdl_write, mdl_write_t *)

static apr_status_t page_answer(page_t *page)
{
    const mdl_settings_t *settings = page->service->settings;
    mdl_access_t *access = &page->answer.access;
    mdl_audit_t audit = {.shop_id = page->link.shop_id,
                         .noun = "order",
                         .noun_id = page->request.storefront_order_id,
                         .action = mdl_help_answer_actions[page->answer.kind],
                         .via = MDL_VIA_SETTINGS,
                         .user = page->link.user,
                         .detail = access->reason};
    mdl_write_t write = {
        .effect = page_answer_effect, .arg = page, .audit = &audit, .problem = &page->problem};
    apr_status_t rv;

    access->shop_id = page->link.shop_id;
    access->user = page->link.user;
    access->default_download_limit = settings->download_limit;
    access->problem = &page->problem;
    page->answer.request_id = page->link.request_id;
    page->answer.mail_host = mdl_settings_public_host(settings, page->r->pool);
    rv = mdl_connection_run(&page->connection, page->r, mdl_db_write, mdl_write_effect, &write);
    if (rv == APR_SUCCESS) {
        mdl_service_wake(page->service, write.due);
    }
    page_close(page);
    return rv;
}

int mdl_help_answer_press(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    apr_status_t rv = page_read(&page);
    int status;

    if (rv != APR_SUCCESS) {
        return page_failure(&page, rv);
    }
    if ((status = page_read_form(&page)) != OK) {
        return page_show(&page, status, 0);
    }
    rv = page_answer(&page);
    if (rv == APR_SUCCESS) {
        return page_show(&page, HTTP_OK, 1);
    }
    if (rv != MDL_EPROBLEM || page.problem.code == NULL) {
        return page_failure(&page, rv);
    }
    status = page.problem.status;
    rv = mdl_connection_run(&page.connection, r, mdl_db_snapshot, page_read_effect, &page);
    page_close(&page);
    return rv == APR_SUCCESS ? page_show(&page, status, 0) : page_failure(&page, rv);
}

int mdl_help_answer_wrong_method(request_rec *r, const mdl_service_t *service, const char *token)
{
    (void)service;
    (void)token;
    return mdl_view_message(r, HTTP_METHOD_NOT_ALLOWED, "wrong_method", NULL);
}
