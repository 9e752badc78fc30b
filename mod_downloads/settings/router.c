#include "settings/router.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>
#include <http_log.h>

#include "base/http/path.h"
#include "core/identifier.h"
#include "request_body.h"
#include "request_notes.h"
#include "settings/file_form.h"
#include "settings/frame.h"
#include "settings/pages.h"
#include "settings/sign_in.h"
#include "tls.h"

APLOG_USE_MODULE(downloads);

#define FORM_MAX_LENGTH 16384
#define FORM_MAX_FIELDS 64

static const mdl_page_t *const tabs[] = {
    mdl_shop_pages,
    mdl_health_pages,
    mdl_overview_pages,
    mdl_order_list_pages,
    mdl_order_by_hand_pages,
    mdl_order_evidence_pages,
    mdl_order_pages,
    mdl_email_pages,
    mdl_email_preview_pages,
    mdl_key_pages,
    mdl_own_shop_pages,
    mdl_preview_pages,
    mdl_member_pages,
    mdl_webhook_pages,
    mdl_audit_pages,
    mdl_product_list_pages,
    mdl_product_pages,
    mdl_file_list_pages,
    mdl_upload_pages,
    mdl_file_pages,
    mdl_pack_list_pages,
    mdl_pack_pages,
    mdl_link_pages,
    mdl_category_pages,
    mdl_search_pages,
    mdl_license_key_pages,
    mdl_sign_in_pages,
    mdl_own_email_pages,
    mdl_product_buyers_pages,
    mdl_customer_merge_pages,
    NULL,
};

/* Finds the page of a path; parameters gets the shop's number and the page's argument. */
static const mdl_page_t *page_find(const char *path, const char **parameters, apr_pool_t *p)
{
    for (const mdl_page_t *const *tab = tabs; *tab != NULL; tab++) {
        for (const mdl_page_t *page = *tab; page->path != NULL; page++) {
            if (mdl_path_match(page->path, path, parameters, p) >= 0) {
                return page;
            }
        }
    }
    return NULL;
}

/* A page has two operations, GET and then POST.  The page to sign in, which is in no tab, is the
   last. */
static int page_number(const mdl_page_t *wanted)
{
    int number = 1;

    for (const mdl_page_t *const *tab = tabs; *tab != NULL; tab++) {
        for (const mdl_page_t *page = *tab; page->path != NULL; page++) {
            if (page == wanted) {
                return number;
            }
            number += 2;
        }
    }
    return number;
}

const char *mdl_settings_router_operation(int number, apr_pool_t *p)
{
    int at = (number + 1) / 2;

    for (const mdl_page_t *const *tab = tabs; *tab != NULL; tab++) {
        for (const mdl_page_t *page = *tab; page->path != NULL; page++) {
            if (--at == 0) {
                return apr_pstrcat(p, number % 2 == 1 ? "GET " : "POST ", page->path, NULL);
            }
        }
    }
    return at == 1 ? apr_pstrcat(p, number % 2 == 1 ? "GET " : "POST ", mdl_sign_in_page.path, NULL)
                   : NULL;
}

/* Finds the user's role in the shop; without a shop, whether the user is an operator. */
typedef struct {
    mdl_visit_t *visit;
    apr_int64_t shop_id;
} role_lookup_t;

static apr_status_t role_lookup_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    role_lookup_t *lookup = arg;
    mdl_visit_t *visit = lookup->visit;
    apr_status_t rv = mdl_member_role(db, visit->user, lookup->shop_id, &visit->role, p);

    if (lookup->shop_id != 0) {
        return rv == APR_SUCCESS ? mdl_shop_find(db, lookup->shop_id, &visit->shop, p) : rv;
    }
    if (rv == APR_ENOENT) {
        visit->role = MDL_ROLE_READ_ONLY;
        rv = APR_SUCCESS;
    }
    return rv;
}

/* The most bytes of its form. */
static apr_size_t page_max_length(const mdl_page_t *page)
{
    return page->max_length != 0 ? page->max_length : FORM_MAX_LENGTH;
}

/* Admits a form only from our origin and with a token that was made for this user.  Returns OK, or
   the status of the message *refusal. */
static int form_admit(mdl_visit_t *visit, const char **refusal)
{
    request_rec *r = visit->r;
    const mdl_page_t *page = visit->page;
    const char *origin = apr_table_get(r->headers_in, "Origin");
    const char *owner = visit->user != NULL ? visit->user
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
    status = page->has_file
                 ? mdl_file_form_read(visit, owner, page_max_length(page))
                 : mdl_request_body_form(r, owner, page_max_length(page),
                                         page->max_fields != 0 ? page->max_fields : FORM_MAX_FIELDS,
                                         &visit->fields);
    if (status != OK) {
        *refusal = "faulty_form";
        return status;
    }
    if (visit->user == NULL) {
        return OK; /* the sign-in form has no token */
    }
    token = apr_table_get(visit->fields, "form_token");
    rv = mdl_form_read(&visit->form, visit->service->secret, visit->user,
                       token != NULL ? token : "", apr_time_now(), r->pool);
    if (rv == APR_TIMEUP) {
        *refusal = "old_form";
    }
    return rv == APR_SUCCESS ? OK : HTTP_FORBIDDEN;
}

static int page_post(mdl_visit_t *visit)
{
    const mdl_page_t *page = visit->page;
    const char *refusal;
    int status;

    mdl_visit_end(visit); /* a body may take as long as the client likes */
    status = form_admit(visit, &refusal);
    visit->audit = (mdl_audit_t){.shop_id = visit->shop != NULL ? visit->shop->id : 0,
                                 .noun = page->noun,
                                 .noun_id = visit->argument,
                                 .action = page->action,
                                 .via = MDL_VIA_SETTINGS,
                                 .user = visit->user};
    if (status == HTTP_REQUEST_ENTITY_TOO_LARGE) {
        return mdl_frame_too_large(visit, page_max_length(page));
    }
    return status == OK ? page->post(visit) : mdl_frame_message(visit, status, refusal);
}

static int page_run(mdl_visit_t *visit, const mdl_page_t *page)
{
    request_rec *r = visit->r;
    int posts = r->method_number == M_POST;

    visit->page = page;
    if (posts || r->method_number == M_GET) {
        mdl_note_operation(r, page_number(page) + posts);
    }
    if ((posts ? page->post : r->method_number == M_GET ? page->get : NULL) == NULL) {
        apr_table_setn(r->headers_out, "Allow",
                       page->get == NULL    ? "POST"
                       : page->post == NULL ? "GET, HEAD"
                                            : "GET, HEAD, POST");
        return mdl_frame_message(visit, HTTP_METHOD_NOT_ALLOWED, "wrong_method");
    }
    if (visit->role < (posts ? page->acts : page->sees)) {
        return mdl_frame_message(visit, HTTP_FORBIDDEN, "not_allowed");
    }
    return posts ? page_post(visit) : page->get(visit);
}

static int router_route(mdl_visit_t *visit, const char *path)
{
    apr_pool_t *p = visit->r->pool;
    const char *slash = strchr(path, '/');
    const char *parameters[MDL_PATH_PARAMETERS] = {NULL};
    const mdl_page_t *page = page_find(path, parameters, p);
    role_lookup_t lookup = {.visit = visit};
    apr_status_t rv;

    if (slash != NULL) {
        lookup.shop_id = mdl_identifier_parse(apr_pstrmemdup(p, path, (apr_size_t)(slash - path)));
    }
    visit->argument = parameters[1];
    rv = mdl_visit_read(visit, role_lookup_effect, &lookup);
    if (rv == APR_SUCCESS && (page == NULL || (parameters[0] != NULL && visit->shop == NULL))) {
        rv = APR_ENOENT;
    }
    if (visit->shop != NULL) {
        mdl_note_id(visit->r, MDL_NOTE_SHOP, visit->shop->id);
    }
    return rv == APR_SUCCESS ? page_run(visit, page) : mdl_frame_failure(visit, rv);
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

/* Sets visit->user; APR_ENOENT for nobody. */
static apr_status_t router_identify(mdl_visit_t *visit)
{
    const char *user = visit->r->user;

    if (mdl_sign_in_is_ours(visit)) {
        return mdl_sign_in_find(visit);
    }
    visit->user = user;
    return user != NULL && *user != '\0' ? APR_SUCCESS : APR_ENOENT;
}

/* Whether a path leads to a page that can be opened, and not to the one that ends a session. */
static int path_is_page(const char *path, apr_pool_t *p)
{
    const char *parameters[MDL_PATH_PARAMETERS] = {NULL};
    const mdl_page_t *page = page_find(path, parameters, p);

    return page != NULL && page->get != NULL && page != mdl_sign_in_pages;
}

/* The page that the browser names in Referer (RFC 9110, section 10.1.3) as the form's, below the
   settings and decoded, and its query without what it has reported; NULL: none of ours. */
static const char *referer_page(const mdl_visit_t *visit, const char **args)
{
    apr_pool_t *p = visit->r->pool;
    const char *url = visit->service->settings->settings_url;
    const char *referer = apr_table_get(visit->r->headers_in, "Referer");
    apr_size_t length = strlen(url);
    char *path, *query;

    if (referer == NULL || strncmp(referer, url, length) != 0 || referer[length] != '/') {
        return NULL;
    }
    path = apr_pstrdup(p, referer + length + 1);
    if ((query = strchr(path, '?')) != NULL) {
        *query++ = '\0';
    }
    if (ap_unescape_url(path) != OK || !path_is_page(path, p)) {
        return NULL;
    }
    if (query != NULL && strncmp(query, "done=", 5) == 0) {
        query = strchr(query, '&') != NULL ? strchr(query, '&') + 1 : NULL;
    }
    *args = query;
    return path;
}

/* The page that a form of nobody's was sent from, so that whoever signs in gets there again.  A
   form that was refused has the address that it was sent to, which is below its page's. */
static const char *form_page(const mdl_visit_t *visit, const char *sent_to, const char **args)
{
    apr_pool_t *p = visit->r->pool;
    const char *page;
    char *path;

    *args = NULL;
    page = referer_page(visit, args);
    if (page != NULL || sent_to == NULL) {
        return page;
    }
    path = apr_pstrdup(p, sent_to);
    while (*path != '\0' && !path_is_page(path, p)) {
        char *slash = strrchr(path, '/');

        *(slash != NULL ? slash : path) = '\0';
    }
    return path;
}

static int router_refuse_nobody(mdl_visit_t *visit, const char *path)
{
    const char *args = visit->r->args;

    visit->user = NULL;
    if (mdl_sign_in_is_ours(visit)) {
        if (visit->r->method_number != M_GET) {
            path = form_page(visit, path, &args);
        }
        return mdl_sign_in_ask(visit, path, args);
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
    if (mdl_sign_in_is_ours(visit) && path != NULL && strcmp(path, mdl_sign_in_page.path) == 0) {
        return page_run(visit, &mdl_sign_in_page);
    }
    rv = router_identify(visit);
    status = rv == APR_SUCCESS  ? router_answer(visit, path)
             : rv == APR_ENOENT ? router_refuse_nobody(visit, path)
                                : mdl_frame_failure(visit, rv);
    mdl_visit_end(visit);
    return status;
}
