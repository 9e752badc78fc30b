#include "upload/upload_url.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>
#include <http_log.h>
#include <http_main.h>
#include <http_protocol.h>

#include "api/response.h"
#include "api/upload_bytes.h"
#include "child_storage.h"
#include "core/download/signed_url.h"
#include "core/shop/forgery.h"
#include "html.h"
#include "request_body.h"
#include "request_notes.h"
#include "tls.h"
#include "upload/cors.h"
#include "upload/upload_body.h"
#include "upload/upload_form.h"

APLOG_USE_MODULE(downloads);

#define TUS_VERSION "1.0.0"
#define ALLOW       "DELETE, HEAD, OPTIONS, PATCH, PUT"

/* The path of DownloadsUploadURL, decoded as r->uri is, or ""; set before a child has threads. */
static const char *root;

void mdl_upload_url_child_init(apr_pool_t *p, const mdl_service_t *service)
{
    const mdl_settings_t *settings = service->settings;
    apr_uri_t uri;

    root = "";
    if (settings->upload_url != NULL &&
        apr_uri_parse(p, settings->upload_url, &uri) == APR_SUCCESS && uri.path != NULL) {
        char *path = apr_pstrdup(p, uri.path);

        root = ap_unescape_url(path) == OK ? path : uri.path;
    }
}

static int upload_url_refuse(mdl_request_t *request)
{
    mdl_request_body_discard(request->r);
    if (request->problem.status == 460) {
        request->r->status_line = "460 Checksum Mismatch"; /* httpd knows no such status */
    }
    return mdl_response_problem(request);
}

static int upload_url_respond(mdl_request_t *request, apr_status_t rv, int status)
{
    if (rv == AP_FILTER_ERROR) {
        return rv;
    }
    if (rv != APR_SUCCESS && rv != MDL_EPROBLEM) {
        mdl_response_failure(request, rv);
    }
    if (rv != APR_SUCCESS) {
        return upload_url_refuse(request);
    }
    request->status = status;
    return mdl_response_send(request, NULL, 0);
}

static int upload_url_options(mdl_request_t *request)
{
    request_rec *r = request->r;

    mdl_request_body_discard(r);
    apr_table_setn(r->headers_out, "Allow", ALLOW);
    apr_table_setn(r->headers_out, "Tus-Version", TUS_VERSION);
    apr_table_setn(r->headers_out, "Tus-Extension", "expiration,checksum,termination");
    apr_table_setn(r->headers_out, "Tus-Checksum-Algorithm", "sha1,sha256");
    apr_table_setn(
        r->headers_out, "Tus-Max-Size",
        apr_psprintf(r->pool, "%" APR_INT64_T_FMT, request->service->settings->upload_max_size));
    return upload_url_respond(request, APR_SUCCESS, HTTP_NO_CONTENT);
}

MDL_EFFECT(mdl_upload_find_live, mdl_upload_get_t *)

static apr_status_t upload_url_head(mdl_request_t *request, const char *id)
{
    request_rec *r = request->r;
    mdl_upload_get_t get = {.id = id, .problem = &request->problem};
    const mdl_upload_t *upload;
    apr_status_t rv = mdl_upload_bytes_run(request, mdl_db_read, mdl_upload_find_live_effect, &get);

    if (rv == APR_SUCCESS) {
        rv = mdl_upload_offset(mdl_child_storage(), get.upload, &get.offset, r->pool);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    upload = get.upload;
    mdl_upload_body_show(r, upload, get.offset);
    if (upload->size >= 0) {
        apr_table_setn(r->headers_out, "Upload-Length",
                       apr_psprintf(r->pool, "%" APR_INT64_T_FMT, upload->size));
    } else {
        apr_table_setn(r->headers_out, "Upload-Defer-Length", "1");
    }
    return APR_SUCCESS;
}

static apr_status_t upload_url_abort_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_upload_get_t *get = arg;
    apr_status_t rv = mdl_upload_find_live(db, p, get);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    get->shop_id = get->upload->shop_id;
    return mdl_upload_abort(db, p, get);
}

static apr_status_t upload_url_delete(mdl_request_t *request, const char *id)
{
    mdl_upload_get_t get = {.id = id, .problem = &request->problem};
    apr_status_t rv = mdl_upload_bytes_run(request, mdl_db_write, upload_url_abort_effect, &get);

    return rv == APR_SUCCESS ? mdl_partial_remove(mdl_child_storage(), id, request->r->pool) : rv;
}

/* tus: every request but OPTIONS names the version that it speaks. */
static int upload_url_speaks_tus(mdl_request_t *request)
{
    const char *version = apr_table_get(request->r->headers_in, "Tus-Resumable");

    if (version != NULL && strcmp(version, TUS_VERSION) == 0) {
        return 1;
    }
    apr_table_setn(request->r->headers_out, "Tus-Version", TUS_VERSION);
    mdl_problem_set(&request->problem, 412, "tus_version_unsupported",
                    "Send Tus-Resumable: " TUS_VERSION ", or PUT the whole file.");
    return 0;
}

static int upload_url_wrong_method(mdl_request_t *request)
{
    apr_table_setn(request->r->headers_out, "Allow", ALLOW);
    mdl_problem_set(&request->problem, 405, "method_not_allowed",
                    "An upload URL does not have that method.");
    return upload_url_refuse(request);
}

/* Leads a form to its upload's page in the settings, which says what was wrong. */
static int upload_url_return(mdl_request_t *request, const char *page, const char *problem)
{
    static const mdl_html_policy_t policy = {.referrer_policy = "no-referrer"};
    request_rec *r = request->r;

    apr_table_setn(r->headers_out, "Location",
                   apr_pstrcat(r->pool, request->service->settings->settings_url, "/", page,
                               problem != NULL ? "?problem=" : "", problem != NULL ? problem : "",
                               NULL));
    mdl_html_send_text(r, HTTP_SEE_OTHER, "", &policy);
    return OK;
}

static int upload_url_post(mdl_request_t *request, const char *id)
{
    const char *page;
    apr_status_t rv = mdl_upload_form_take(request, id, &page);

    if (rv == APR_ENOTIMPL) {
        return upload_url_wrong_method(request);
    }
    if (rv == AP_FILTER_ERROR || page == NULL || request->service->settings->settings_url == NULL) {
        return upload_url_respond(request, rv, HTTP_NO_CONTENT);
    }
    if (rv != APR_SUCCESS && rv != MDL_EPROBLEM) {
        mdl_response_failure(request, rv);
    }
    return upload_url_return(request, page, rv != APR_SUCCESS ? request->problem.code : NULL);
}

static int upload_url_dispatch(mdl_request_t *request, const char *id, const char *method)
{
    if (strcmp(method, "PUT") == 0) {
        return upload_url_respond(request, mdl_upload_body_write(request, id, 1), HTTP_NO_CONTENT);
    }
    if (strcmp(method, "POST") == 0) {
        return upload_url_post(request, id);
    }
    if (strcmp(method, "HEAD") != 0 && strcmp(method, "PATCH") != 0 &&
        strcmp(method, "DELETE") != 0) {
        return upload_url_wrong_method(request);
    }
    if (!upload_url_speaks_tus(request)) {
        return upload_url_refuse(request);
    }
    if (strcmp(method, "PATCH") == 0) {
        return upload_url_respond(request, mdl_upload_body_write(request, id, 0), HTTP_NO_CONTENT);
    }
    mdl_request_body_discard(request->r);
    return strcmp(method, "HEAD") == 0
               ? upload_url_respond(request, upload_url_head(request, id), HTTP_OK)
               : upload_url_respond(request, upload_url_delete(request, id), HTTP_NO_CONTENT);
}

static const char *const methods[] = {"OPTIONS", "HEAD", "PATCH", "PUT", "POST", "DELETE"};
#define METHOD_COUNT ((int)(sizeof methods / sizeof *methods))

const char *mdl_upload_url_operation(int number, apr_pool_t *p)
{
    (void)p;
    return number <= METHOD_COUNT ? methods[number - 1] : NULL;
}

static void upload_url_note_operation(request_rec *r, const char *method)
{
    for (int i = 0; i < METHOD_COUNT; i++) {
        if (strcmp(method, methods[i]) == 0) {
            mdl_note_operation(r, i + 1);
        }
    }
}

/* The upload's id in the URL's token; NULL unless the token is genuine. */
static const char *upload_url_id(request_rec *r, const mdl_service_t *service)
{
    apr_size_t length = strlen(root);

    return strncmp(r->uri, root, length) == 0 && r->uri[length] == '/'
               ? mdl_signed_url_upload_id(service->secret, r->uri + length + 1, r->pool)
               : NULL;
}

int mdl_upload_url_handle(request_rec *r, const mdl_service_t *service)
{
    mdl_request_t *request = apr_pcalloc(r->pool, sizeof *request);
    const char *method = apr_table_get(r->headers_in, "X-HTTP-Method-Override");
    mdl_rate_state_t state;
    const char *id;

    request->r = r;
    request->service = service;
    request->request_id = mdl_request_id(r);
    request->path = "an upload"; /* in the log: the URL is a secret */
    method = method != NULL ? method : r->method;
    upload_url_note_operation(r, method);
    apr_table_setn(r->err_headers_out, "Tus-Resumable", TUS_VERSION);
    mdl_upload_cors(r, service->settings);
    if (!mdl_tls_admits(r, service->settings)) {
        mdl_problem_set(&request->problem, 403, "tls_required", MDL_TLS_REQUIRED);
        return upload_url_refuse(request);
    }
    if (strcmp(method, "OPTIONS") == 0) {
        return upload_url_options(request);
    }
    if (mdl_child_storage() == NULL) {
        mdl_problem_set(&request->problem, 503, "service_unavailable",
                        "The service can't reach its storage.");
        return upload_url_refuse(request);
    }
    if ((id = upload_url_id(r, service)) == NULL) {
        mdl_forgery_note(service->rate_limit, "upload link", r->useragent_ip, &state, r->pool);
        mdl_problem_set(&request->problem, 404, "upload_not_found", "There is no such upload.");
        return upload_url_refuse(request);
    }
    return upload_url_dispatch(request, id, method);
}
