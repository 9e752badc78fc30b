#include "settings/frame.h"

#include <stdarg.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>
#include <http_log.h>
#include <http_main.h>

#include "base/http/accept_language.h"
#include "base/text/present.h"
#include "base/text/templates.h"
#include "core/closed.h"
#include "core/write.h"
#include "html.h"
#include "settings/navigation.h"

APLOG_USE_MODULE(downloads);

#define RETRY_AFTER "5" /* seconds */

/* Shown where there is no template. */
#define PLAIN_TEXT "This page can't be shown: its template is missing or faulty.\n"

/* Set before a child has threads and read by all of them. */
static struct {
    const mdl_templates_t *templates;
    const char *path; /* as it stands in URLs */
    const char *root; /* the same, decoded */
    const char *origin;

    /* Sources for the policies of pages (mdl_html_policy_t). */
    const char *own;
    const char *uploads;
    const char *logo;
} frame;

void mdl_frame_child_init(apr_pool_t *p, const mdl_settings_t *settings)
{
    apr_array_header_t *problems = apr_array_make(p, 2, sizeof(const char *));
    apr_uri_t uri;
    char *root;

    frame.path = frame.root = frame.origin = "";
    if (settings->settings_url == NULL ||
        apr_uri_parse(p, settings->settings_url, &uri) != APR_SUCCESS) {
        return;
    }
    frame.path = uri.path != NULL ? uri.path : "";
    root = apr_pstrdup(p, frame.path);
    frame.root = ap_unescape_url(root) == OK ? root : frame.path;
    frame.origin = apr_pstrcat(p, uri.scheme, "://", uri.hostinfo, NULL);
    frame.own = apr_pstrcat(p, " ", settings->settings_url, "/", NULL);
    frame.uploads = settings->upload_url != NULL
                        ? apr_pstrcat(p, " ", settings->upload_url, "/", NULL)
                        : "";
    frame.logo = apr_pstrcat(p, " ", settings->public_url, "/logo/", NULL);
    frame.templates = mdl_templates_read_settings(settings->templates,
                                                  mdl_settings_tab_template_names, problems, p);
    for (int i = 0; i < problems->nelts; i++) {
        ap_log_error(
            APLOG_MARK, APLOG_ERR, 0, ap_server_conf,
            "MDL0501: %s Members see another language or plain text until it is mended and "
            "httpd has been restarted.",
            APR_ARRAY_IDX(problems, i, const char *));
    }
}

const char *mdl_frame_root(void)
{
    return frame.root;
}

const char *mdl_frame_origin(void)
{
    return frame.origin;
}

const char *mdl_frame_path(const mdl_visit_t *visit, const char *format, ...)
{
    va_list arguments;
    const char *rest;

    va_start(arguments, format);
    rest = apr_pvsprintf(visit->r->pool, format, arguments);
    va_end(arguments);
    return apr_pstrcat(visit->r->pool, frame.path, "/", rest, NULL);
}

/* Adds the action that a redirect reports; a template shows those that it has a sentence for. */
static void frame_add_done(mdl_json_t *data, const mdl_visit_t *visit)
{
    const char *query = visit->r->args;
    size_t length;

    if (query == NULL || strncmp(query, "done=", 5) != 0 || visit->r->method_number != M_GET) {
        return;
    }
    query += 5;
    length = strspn(query, "abcdefghijklmnopqrstuvwxyz_");
    if (query[length] == '\0' || query[length] == '&') {
        mdl_json_add_bool(mdl_json_add_object(data, "done"),
                          apr_pstrmemdup(visit->r->pool, query, length), 1);
    }
}

const char *mdl_frame_shop_state(const mdl_shop_t *shop, apr_pool_t *p)
{
    return apr_pstrcat(p, mdl_shop_status_names[shop->status],
                       shop->blocked_at != 0 ? "-blocked" : "", NULL);
}

static void frame_add_token(mdl_json_t *to, const mdl_visit_t *visit)
{
    mdl_json_add_string(
        to, "form_token",
        mdl_form_token(visit->service->secret, visit->user, apr_time_now(), visit->r->pool));
}

mdl_json_t *mdl_frame_data(const mdl_visit_t *visit)
{
    mdl_json_t *data = mdl_json_object(visit->r->pool);
    mdl_json_t *shop, *problem;

    mdl_json_add_string(data, "root", frame.path);
    mdl_json_add_string(data, "user", visit->user);
    mdl_json_add_bool(data, "may_act", visit->role >= MDL_ROLE_STAFF);
    mdl_json_add_bool(data, "may_manage", visit->role >= MDL_ROLE_OWNER);
    mdl_json_add_bool(data, "operates", visit->role >= MDL_ROLE_OPERATOR);
    mdl_json_add_bool(data, "signs_in", visit->service->settings->settings_sign_in != NULL);
    if (visit->user != NULL) {
        frame_add_token(data, visit);
    }
    mdl_navigation_add(data, visit);
    if (visit->shop != NULL) {
        shop = mdl_json_add_object(data, "shop");
        mdl_json_add_int(shop, "shop_id", visit->shop->id);
        mdl_json_add_string(shop, "shop_name", visit->shop->name);
        mdl_frame_add_choice(shop, mdl_shop_status_names, (int)visit->shop->status);
        mdl_json_add_string(shop, "block_reason", visit->shop->block_reason);
    }
    if (visit->problem.message != NULL) {
        problem = mdl_json_add_object(data, "problem");
        mdl_json_add_bool(problem, visit->problem.code, 1);
        mdl_json_add_string(problem, "message", visit->problem.message);
    }
    frame_add_done(data, visit);
    return data;
}

void mdl_frame_add_choice(mdl_json_t *to, const char *const *names, int value)
{
    for (int i = 0; names[i] != NULL; i++) {
        mdl_json_add_bool(to, names[i], i == value);
    }
}

/* Sets Vary and Content-Language according to the choice. */
static const mdl_template_t *frame_choose(request_rec *r, const char *name)
{
    const char *language = "";
    const mdl_template_t *template = mdl_templates_get(
        frame.templates, name, 0,
        mdl_accept_language(apr_table_get(r->headers_in, "Accept-Language"), r->pool), &language,
        r->pool);

    apr_table_mergen(r->headers_out, "Vary", "Accept-Language");
    if (template != NULL && *language != '\0') {
        apr_table_setn(r->headers_out, "Content-Language", language);
    }
    return template;
}

static mdl_html_policy_t frame_policy(const mdl_visit_t *visit)
{
    unsigned allows = visit->page != NULL ? visit->page->allows : 0;
    /* A browser then sends a form's Origin only to the site itself (Fetch standard, section 3.2).
     */
    mdl_html_policy_t policy = {.referrer_policy = "same-origin"};

    if (allows & MDL_ALLOW_UPLOADS) {
        policy.form_action = frame.uploads;
        policy.connect = apr_pstrcat(visit->r->pool, frame.own, frame.uploads, NULL);
    }
    if (allows & MDL_ALLOW_LOGO) {
        policy.img = frame.logo;
    }
    if (allows & MDL_ALLOW_FRAME) {
        policy.frame = frame.own;
    }
    return policy;
}

int mdl_frame_send(mdl_visit_t *visit, int status, const char *name, const mdl_json_t *data,
                   const mdl_template_list_t *list)
{
    const mdl_template_t *template = frame_choose(visit->r, name);
    mdl_html_policy_t policy = frame_policy(visit);

    mdl_visit_end(visit);
    if (template != NULL) {
        mdl_html_send(visit->r, status, template, data, list, &policy);
    } else {
        mdl_html_send_text(visit->r, HTTP_INTERNAL_SERVER_ERROR, PLAIN_TEXT, &policy);
    }
    return OK;
}

int mdl_frame_send_letter(mdl_visit_t *visit, const mdl_letter_t *letter)
{
    const mdl_html_policy_t policy = {
        .referrer_policy = "no-referrer", .img = frame.logo, .is_framed = 1};

    mdl_visit_end(visit);
    mdl_html_send(visit->r, HTTP_OK, letter->html, letter->source->data, NULL, &policy);
    return OK;
}

int mdl_frame_answer(mdl_visit_t *visit, int status, mdl_json_t *data)
{
    const mdl_html_policy_t policy = frame_policy(visit);

    frame_add_token(data, visit);
    mdl_visit_end(visit);
    mdl_html_send_json(visit->r, status, data, &policy);
    return OK;
}

static int frame_message(mdl_visit_t *visit, int status, const char *state, mdl_json_t *data)
{
    mdl_json_add_bool(data, state, 1);
    mdl_json_add_string(data, "state", state);
    mdl_json_add_int(data, "status", status);
    return mdl_frame_send(visit, status, "message.html", data, NULL);
}

int mdl_frame_message(mdl_visit_t *visit, int status, const char *state)
{
    return frame_message(visit, status, state, mdl_frame_data(visit));
}

int mdl_frame_too_large(mdl_visit_t *visit, apr_size_t most)
{
    mdl_json_t *data = mdl_frame_data(visit);

    mdl_present_size(data, "most", (apr_int64_t)most);
    return frame_message(visit, HTTP_REQUEST_ENTITY_TOO_LARGE,
                         visit->page->has_file ? "file_too_large" : "form_too_large", data);
}

int mdl_frame_failure(mdl_visit_t *visit, apr_status_t rv)
{
    if (rv == APR_ENOENT || (rv == MDL_EPROBLEM && visit->problem.status == HTTP_NOT_FOUND)) {
        return mdl_frame_message(visit, HTTP_NOT_FOUND, "not_found");
    }
    if (rv == MDL_EPROBLEM) {
        return mdl_frame_message(visit, visit->problem.status, "refused");
    }
    if (rv == MDL_EUSED) {
        return mdl_frame_message(visit, HTTP_CONFLICT, "form_used");
    }
    if (rv == APR_EACCES) {
        return mdl_frame_message(visit, HTTP_FORBIDDEN, "not_allowed");
    }
    if (rv == MDL_DB_ECLOSED) {
        apr_table_setn(visit->r->headers_out, "Retry-After", APR_STRINGIFY(MDL_CLOSED_WAIT));
        return mdl_frame_message(visit, HTTP_SERVICE_UNAVAILABLE, "maintenance");
    }
    if (mdl_db_unavailable(rv)) {
        apr_table_setn(visit->r->headers_out, "Retry-After", RETRY_AFTER);
        return mdl_frame_message(visit, HTTP_SERVICE_UNAVAILABLE, "try_again");
    }
    ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, visit->r, "MDL0502: a page of the settings failed");
    return mdl_frame_message(visit, HTTP_INTERNAL_SERVER_ERROR, "error");
}

int mdl_frame_redirect(mdl_visit_t *visit, const char *path, const char *done)
{
    mdl_html_policy_t policy = frame_policy(visit);

    apr_table_setn(visit->r->headers_out, "Location",
                   apr_pstrcat(visit->r->pool, path, done != NULL ? "?done=" : "",
                               done != NULL ? done : "", NULL));
    mdl_visit_end(visit);
    mdl_html_send_text(visit->r, HTTP_SEE_OTHER, "", &policy);
    return OK;
}

int mdl_frame_done(mdl_visit_t *visit, apr_status_t rv, const char *page)
{
    return rv == APR_SUCCESS
               ? mdl_frame_redirect(
                     visit, mdl_frame_path(visit, "%" APR_INT64_T_FMT "/%s", visit->shop->id, page),
                     visit->page->done)
               : mdl_frame_failure(visit, rv);
}
