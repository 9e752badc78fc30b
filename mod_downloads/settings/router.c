#include "settings/router.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>
#include <http_log.h>

#include "request_body.h"
#include "settings/audit.h"
#include "settings/frame.h"
#include "settings/keys.h"
#include "settings/members.h"
#include "settings/order.h"
#include "settings/orders.h"
#include "settings/overview.h"
#include "settings/shops.h"
#include "settings/sign_in.h"
#include "settings/visit.h"
#include "settings/webhooks.h"
#include "tls.h"

APLOG_USE_MODULE(downloads);

#define FORM_MAX_LENGTH 16384
#define FORM_MAX_FIELDS 64

typedef int page_fn(mdl_visit_t *visit);

typedef struct {
    const char *path; /* below the settings, or below a shop; "*" is a segment that is no "" */
    mdl_role_t sees;  /* the least role for GET */
    page_fn *get;     /* or NULL */
    mdl_role_t acts;  /* the same for POST */
    page_fn *post;
    const char *noun; /* what the audit has of a POST */
    const char *action;
} route_t;

static const route_t routes[] = {
    {"", MDL_ROLE_READ_ONLY, mdl_shops_mine, MDL_ROLE_OPERATOR, NULL, NULL, NULL},
    {"shops", MDL_ROLE_OPERATOR, mdl_shops_show, MDL_ROLE_OPERATOR, mdl_shops_add, "shop",
     "created"},
    {"audit", MDL_ROLE_OPERATOR, mdl_audit_show, MDL_ROLE_OPERATOR, NULL, NULL, NULL},
    {"sign-out", MDL_ROLE_READ_ONLY, mdl_sign_in_explain_end, MDL_ROLE_READ_ONLY, mdl_sign_in_end,
     NULL, NULL},
};

/* For nobody yet. */
static const route_t sign_in_route = {
    .path = "sign-in", .get = mdl_sign_in_show, .post = mdl_sign_in_take};

static const route_t shop_routes[] = {
    {"", MDL_ROLE_READ_ONLY, mdl_overview_show, MDL_ROLE_OPERATOR, NULL, NULL, NULL},
    {"orders", MDL_ROLE_READ_ONLY, mdl_orders_show, MDL_ROLE_STAFF, NULL, NULL, NULL},
    {"orders/*", MDL_ROLE_READ_ONLY, mdl_order_page_show, MDL_ROLE_STAFF, NULL, NULL, NULL},
    {"orders/*/revoke", MDL_ROLE_STAFF, NULL, MDL_ROLE_STAFF, mdl_order_page_revoke, "order",
     "revoked"},
    {"orders/*/restore", MDL_ROLE_STAFF, NULL, MDL_ROLE_STAFF, mdl_order_page_restore, "order",
     "restored"},
    {"orders/*/approve", MDL_ROLE_STAFF, NULL, MDL_ROLE_STAFF, mdl_order_page_approve, "order",
     "approved"},
    {"orders/*/reject", MDL_ROLE_STAFF, NULL, MDL_ROLE_STAFF, mdl_order_page_reject, "order",
     "rejected"},
    {"orders/*/grant", MDL_ROLE_STAFF, NULL, MDL_ROLE_STAFF, mdl_order_page_grant, "order",
     "downloads_granted"},
    {"orders/*/resend", MDL_ROLE_STAFF, NULL, MDL_ROLE_STAFF, mdl_order_page_resend, "order",
     "email_resent"},
    {"orders/*/rotate-link", MDL_ROLE_STAFF, NULL, MDL_ROLE_STAFF, mdl_order_page_rotate_link,
     "order", "link_rotated"},
    {"jobs/*/retry", MDL_ROLE_STAFF, NULL, MDL_ROLE_STAFF, mdl_overview_retry, "job", "retried"},
    {"approve", MDL_ROLE_OPERATOR, NULL, MDL_ROLE_OPERATOR, mdl_shops_approve, "shop", "approved"},
    {"suspend", MDL_ROLE_OPERATOR, NULL, MDL_ROLE_OPERATOR, mdl_shops_suspend, "shop", "suspended"},
    {"block", MDL_ROLE_OPERATOR, mdl_shops_ask_block, MDL_ROLE_OPERATOR, mdl_shops_block, "shop",
     "blocked"},
    {"unblock", MDL_ROLE_OPERATOR, NULL, MDL_ROLE_OPERATOR, mdl_shops_unblock, "shop", "unblocked"},
    {"keys", MDL_ROLE_READ_ONLY, mdl_keys_show, MDL_ROLE_OWNER, mdl_keys_create, "api_key",
     "created"},
    {"audit", MDL_ROLE_OWNER, mdl_audit_show, MDL_ROLE_OPERATOR, NULL, NULL, NULL},
    {"members", MDL_ROLE_OWNER, mdl_members_show, MDL_ROLE_OWNER, mdl_members_add, "member",
     "saved"},
    {"members/remove", MDL_ROLE_OWNER, NULL, MDL_ROLE_OWNER, mdl_members_remove, "member",
     "deleted"},
    {"members/ask", MDL_ROLE_OWNER, NULL, MDL_ROLE_OWNER, mdl_members_ask, "member", "asked"},
    {"keys/*/revoke", MDL_ROLE_OWNER, mdl_keys_ask, MDL_ROLE_OWNER, mdl_keys_revoke, "api_key",
     "revoked"},
    {"webhooks", MDL_ROLE_READ_ONLY, mdl_webhooks_show, MDL_ROLE_OWNER, mdl_webhooks_create,
     "webhook_endpoint", "created"},
    {"webhooks/*", MDL_ROLE_READ_ONLY, mdl_webhooks_show_one, MDL_ROLE_OWNER, mdl_webhooks_change,
     "webhook_endpoint", "changed"},
    {"webhooks/*/rotate-secret", MDL_ROLE_OWNER, NULL, MDL_ROLE_OWNER, mdl_webhooks_rotate,
     "webhook_endpoint", "secret_rotated"},
    {"webhooks/*/test", MDL_ROLE_OWNER, NULL, MDL_ROLE_OWNER, mdl_webhooks_test, "webhook_endpoint",
     "tested"},
    {"webhooks/*/resend", MDL_ROLE_OWNER, NULL, MDL_ROLE_OWNER, mdl_webhooks_resend,
     "webhook_endpoint", "event_resent"},
    {"webhooks/*/delete", MDL_ROLE_OWNER, mdl_webhooks_ask, MDL_ROLE_OWNER, mdl_webhooks_delete,
     "webhook_endpoint", "deleted"},
};

/* Whether a path is that of a route; *argument gets what stands in the place of its "*". */
static int route_matches(const char *pattern, const char *path, const char **argument,
                         apr_pool_t *p)
{
    const char *star = strchr(pattern, '*');
    apr_size_t before, length, after;

    if (star == NULL) {
        return strcmp(pattern, path) == 0;
    }
    before = (apr_size_t)(star - pattern);
    if (strncmp(pattern, path, before) != 0) {
        return 0;
    }
    path += before;
    length = strlen(path);
    after = strlen(star + 1);
    if (length <= after || strcmp(path + length - after, star + 1) != 0 ||
        memchr(path, '/', length - after) != NULL) {
        return 0;
    }
    *argument = apr_pstrmemdup(p, path, length - after);
    return 1;
}

static const route_t *route_find(mdl_visit_t *visit, const route_t *of, apr_size_t count,
                                 const char *path)
{
    for (apr_size_t i = 0; i < count; i++) {
        if (route_matches(of[i].path, path, &visit->argument, visit->r->pool)) {
            return &of[i];
        }
    }
    return NULL;
}

/* Who the user is to the shop, or without one whether it is an operator. */
typedef struct {
    mdl_visit_t *visit;
    apr_int64_t shop_id;
} entrance_t;

static apr_status_t entrance_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    entrance_t *entrance = arg;
    mdl_visit_t *visit = entrance->visit;
    apr_status_t rv = mdl_member_role(db, visit->user, entrance->shop_id, &visit->role, p);

    if (entrance->shop_id != 0) {
        return rv == APR_SUCCESS ? mdl_shop_find(db, entrance->shop_id, &visit->shop, p) : rv;
    }
    if (rv == APR_ENOENT) {
        visit->role = MDL_ROLE_READ_ONLY;
        rv = APR_SUCCESS;
    }
    return rv;
}

/* A form of another site has another Origin, and none of ours was shown this token to anybody else.
   Anything but OK is the status of the message *refusal. */
static int form_admit(mdl_visit_t *visit, const char **refusal)
{
    request_rec *r = visit->r;
    const char *origin = apr_table_get(r->headers_in, "Origin");
    const char *whose = visit->user != NULL ? visit->user
                                            : mdl_rate_limit_network(r->useragent_ip, r->pool);
    const char *token;
    apr_status_t rv;
    int status;

    *refusal = "foreign_form";
    if (origin == NULL || strcmp(origin, mdl_frame_origin()) != 0) {
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r,
                      "MDL0503: refused a form of another origin than that of "
                      "DownloadsSettingsURL, %s",
                      mdl_frame_origin());
        return HTTP_FORBIDDEN;
    }
    status = mdl_request_body_form(r, whose, FORM_MAX_LENGTH, FORM_MAX_FIELDS, &visit->fields);
    if (status != OK) {
        *refusal = "faulty_form";
        return status;
    }
    if (visit->user == NULL) {
        return OK; /* who signs in was shown no token */
    }
    token = apr_table_get(visit->fields, "form_token");
    rv = mdl_form_read(&visit->form, visit->service->secret, visit->user,
                       token != NULL ? token : "", apr_time_now(), r->pool);
    if (rv == APR_TIMEUP) {
        *refusal = "old_form";
    }
    return rv == APR_SUCCESS ? OK : HTTP_FORBIDDEN;
}

static int route_post(mdl_visit_t *visit, const route_t *route)
{
    const char *refusal;
    int status;

    mdl_visit_end(visit); /* a body may take as long as the client likes */
    status = form_admit(visit, &refusal);
    visit->acts = route->acts;
    visit->audit = (mdl_audit_t){.shop_id = visit->shop != NULL ? visit->shop->id : 0,
                                 .noun = route->noun,
                                 .noun_id = visit->argument,
                                 .action = route->action,
                                 .via = MDL_VIA_SETTINGS,
                                 .user = visit->user};
    return status == OK ? route->post(visit) : mdl_frame_message(visit, status, refusal);
}

static int route_run(mdl_visit_t *visit, const route_t *route)
{
    request_rec *r = visit->r;
    int posts = r->method_number == M_POST;

    if ((posts ? route->post : r->method_number == M_GET ? route->get : NULL) == NULL) {
        apr_table_setn(r->headers_out, "Allow",
                       route->get == NULL    ? "POST"
                       : route->post == NULL ? "GET, HEAD"
                                             : "GET, HEAD, POST");
        return mdl_frame_message(visit, HTTP_METHOD_NOT_ALLOWED, "wrong_method");
    }
    if (visit->role < (posts ? route->acts : route->sees)) {
        return mdl_frame_message(visit, HTTP_FORBIDDEN, "not_allowed");
    }
    return posts ? route_post(visit, route) : route->get(visit);
}

/* The number that a path begins with, and what is behind it; 0 for none. */
static apr_int64_t path_take_number(const char **path)
{
    apr_size_t digits = strspn(*path, "0123456789");
    apr_int64_t number = digits > 0 && digits < 16 && **path != '0' ? apr_atoi64(*path) : 0;

    if (number != 0 && (*path)[digits] == '/') {
        *path += digits + 1;
        return number;
    }
    return 0;
}

static int router_route(mdl_visit_t *visit, const char *path)
{
    entrance_t entrance = {.visit = visit};
    const route_t *route;
    apr_status_t rv;

    entrance.shop_id = path_take_number(&path);
    route = entrance.shop_id != 0
                ? route_find(visit, shop_routes, sizeof shop_routes / sizeof *shop_routes, path)
                : route_find(visit, routes, sizeof routes / sizeof *routes, path);
    rv = mdl_visit_read(visit, entrance_effect, &entrance);
    if (rv == APR_ENOENT || (rv == APR_SUCCESS && route == NULL)) {
        return mdl_frame_message(visit, HTTP_NOT_FOUND, "not_found");
    }
    return rv == APR_SUCCESS ? route_run(visit, route) : mdl_frame_failure(visit, rv);
}

void mdl_settings_router_child_init(apr_pool_t *p, const mdl_service_t *service)
{
    mdl_frame_child_init(p, service->settings);
}

/* The path below the settings; NULL for one that is not. */
static const char *router_path(const request_rec *r)
{
    apr_size_t length = strlen(mdl_frame_root());

    return strncmp(r->uri, mdl_frame_root(), length) == 0 && r->uri[length] == '/'
               ? r->uri + length + 1
               : NULL;
}

/* Who comes; APR_ENOENT for nobody. */
static apr_status_t router_identify(mdl_visit_t *visit)
{
    const char *user = visit->r->user;

    if (mdl_sign_in_is_ours(visit)) {
        return mdl_sign_in_find(visit);
    }
    visit->user = user;
    return user != NULL && *user != '\0' ? APR_SUCCESS : APR_ENOENT;
}

static int router_refuse_nobody(mdl_visit_t *visit, const char *path)
{
    visit->user = NULL;
    if (mdl_sign_in_is_ours(visit)) {
        return mdl_sign_in_ask(visit, path);
    }
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, visit->r,
                  "MDL0504: the <Location> of the handler " MDL_SETTINGS_HANDLER
                  " lets everybody in: it needs AuthType and \"Require valid-user\", or the server "
                  "DownloadsSettingsSignIn");
    return mdl_frame_message(visit, HTTP_FORBIDDEN, "no_user");
}

/* path is NULL for the settings' own URL, and for one that only begins like it. */
static int router_answer(mdl_visit_t *visit, const char *path)
{
    if (path != NULL) {
        return router_route(visit, path);
    }
    return strcmp(visit->r->uri, mdl_frame_root()) == 0
               ? mdl_frame_redirect(visit, mdl_frame_path(visit, "%s", ""), NULL)
               : mdl_frame_message(visit, HTTP_NOT_FOUND, "not_found");
}

int mdl_settings_router_handle(request_rec *r, const mdl_service_t *service)
{
    mdl_visit_t *visit = apr_pcalloc(r->pool, sizeof *visit);
    const char *path = router_path(r);
    apr_status_t rv;
    int status;

    visit->r = r;
    visit->service = service;
    if (!mdl_tls_admits(r, service->settings)) {
        return mdl_frame_message(visit, HTTP_FORBIDDEN, "tls_required");
    }
    if (mdl_sign_in_is_ours(visit) && path != NULL && strcmp(path, sign_in_route.path) == 0) {
        return route_run(visit, &sign_in_route);
    }
    rv = router_identify(visit);
    status = rv == APR_SUCCESS  ? router_answer(visit, path)
             : rv == APR_ENOENT ? router_refuse_nobody(visit, path)
                                : mdl_frame_failure(visit, rv);
    mdl_visit_end(visit);
    return status;
}
