#include "upload/upload_url.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>
#include <http_log.h>
#include <http_main.h>
#include <http_protocol.h>

#include "api/response.h"
#include "child_storage.h"
#include "upload/cors.h"
#include "upload/upload_body.h"
#include "core/download/signed_url.h"
#include "request_body.h"

APLOG_USE_MODULE(downloads);

#define TUS_VERSION "1.0.0"
#define ALLOW       "DELETE, HEAD, OPTIONS, PATCH, PUT"

/* The path of DownloadsUploadURL, decoded as r->uri is; "" for none.  Set before a child has
   threads. */
static const char *root;

void mdl_upload_child_init(apr_pool_t *p, const mdl_service_t *service)
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

static int upload_url_refuse(mdl_upload_exchange_t *exchange)
{
    mdl_request_t *request = &exchange->request;

    mdl_request_body_discard(request->r);
    if (request->problem.status == 460) {
        request->r->status_line = "460 Checksum Mismatch"; /* httpd knows no such status */
    }
    return mdl_response_problem(request);
}

static int upload_url_response(mdl_upload_exchange_t *exchange, apr_status_t rv, int status)
{
    if (rv == AP_FILTER_ERROR) {
        return rv;
    }
    if (rv != APR_SUCCESS && rv != MDL_EPROBLEM) {
        mdl_response_failure(&exchange->request, rv);
    }
    if (rv != APR_SUCCESS) {
        return upload_url_refuse(exchange);
    }
    exchange->request.status = status;
    return mdl_response_send(&exchange->request, NULL, 0);
}

static int tell_options(mdl_upload_exchange_t *exchange)
{
    request_rec *r = exchange->request.r;

    mdl_request_body_discard(r);
    apr_table_setn(r->headers_out, "Allow", ALLOW);
    apr_table_setn(r->headers_out, "Tus-Version", TUS_VERSION);
    apr_table_setn(r->headers_out, "Tus-Extension", "expiration,checksum,termination");
    apr_table_setn(r->headers_out, "Tus-Checksum-Algorithm", "sha1,sha256");
    apr_table_setn(r->headers_out, "Tus-Max-Size",
                   apr_psprintf(r->pool, "%" APR_INT64_T_FMT,
                                exchange->request.service->settings->upload_max_size));
    return upload_url_response(exchange, APR_SUCCESS, HTTP_NO_CONTENT);
}

static apr_status_t tell_offset(mdl_upload_exchange_t *exchange)
{
    request_rec *r = exchange->request.r;
    mdl_upload_t *upload;
    apr_int64_t offset;
    apr_status_t rv = mdl_upload_read(exchange, &upload);

    if (rv == APR_SUCCESS) {
        rv = mdl_upload_offset(exchange->storage, upload, &offset, r->pool);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    mdl_upload_show(r, upload, offset);
    if (upload->size >= 0) {
        apr_table_setn(r->headers_out, "Upload-Length",
                       apr_psprintf(r->pool, "%" APR_INT64_T_FMT, upload->size));
    } else {
        apr_table_setn(r->headers_out, "Upload-Defer-Length", "1");
    }
    return APR_SUCCESS;
}

static apr_status_t upload_url_terminate(mdl_upload_exchange_t *exchange)
{
    mdl_upload_get_t get = {.id = exchange->id, .problem = &exchange->request.problem};
    mdl_upload_t *upload;
    apr_status_t rv = mdl_upload_read(exchange, &upload);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    get.shop_id = upload->shop_id;
    rv = mdl_upload_commit(exchange, mdl_upload_abort, &get);
    return rv == APR_SUCCESS
               ? mdl_partial_remove(exchange->storage, exchange->id, exchange->request.r->pool)
               : rv;
}

/* tus: every request but OPTIONS names the version that it speaks. */
static int speaks_tus(mdl_upload_exchange_t *exchange)
{
    const char *version = apr_table_get(exchange->request.r->headers_in, "Tus-Resumable");

    if (version != NULL && strcmp(version, TUS_VERSION) == 0) {
        return 1;
    }
    apr_table_setn(exchange->request.r->headers_out, "Tus-Version", TUS_VERSION);
    mdl_problem_set(&exchange->request.problem, 412, "tus_version_unsupported",
                    "Send Tus-Resumable: " TUS_VERSION ", or PUT the whole file.");
    return 0;
}

static int upload_url_dispatch(mdl_upload_exchange_t *exchange, const char *method)
{
    exchange->put = strcmp(method, "PUT") == 0;
    if (exchange->put) {
        return upload_url_response(exchange, mdl_upload_write(exchange), HTTP_NO_CONTENT);
    }
    if (strcmp(method, "HEAD") != 0 && strcmp(method, "PATCH") != 0 &&
        strcmp(method, "DELETE") != 0) {
        apr_table_setn(exchange->request.r->headers_out, "Allow", ALLOW);
        mdl_problem_set(&exchange->request.problem, 405, "method_not_allowed",
                        "An upload URL does not have that method.");
        return upload_url_refuse(exchange);
    }
    if (!speaks_tus(exchange)) {
        return upload_url_refuse(exchange);
    }
    if (strcmp(method, "PATCH") == 0) {
        return upload_url_response(exchange, mdl_upload_write(exchange), HTTP_NO_CONTENT);
    }
    mdl_request_body_discard(exchange->request.r);
    return strcmp(method, "HEAD") == 0
               ? upload_url_response(exchange, tell_offset(exchange), HTTP_OK)
               : upload_url_response(exchange, upload_url_terminate(exchange), HTTP_NO_CONTENT);
}

/* The upload's id of r->uri; NULL unless its token is ours. */
static const char *id_of(request_rec *r, const mdl_service_t *service)
{
    apr_size_t length = strlen(root);

    return strncmp(r->uri, root, length) == 0 && r->uri[length] == '/'
               ? mdl_signed_url_upload_id(service->secret, r->uri + length + 1, r->pool)
               : NULL;
}

int mdl_upload_handle(request_rec *r, const mdl_service_t *service)
{
    mdl_upload_exchange_t *exchange = apr_pcalloc(r->pool, sizeof *exchange);
    const char *method = apr_table_get(r->headers_in, "X-HTTP-Method-Override");

    exchange->request = (mdl_request_t){
        .r = r, .service = service, .request_id = mdl_response_request_id(r), .path = "an upload"};
    exchange->storage = mdl_child_storage();
    method = method != NULL ? method : r->method;
    apr_table_setn(r->err_headers_out, "Tus-Resumable", TUS_VERSION);
    mdl_upload_cors(r, service->settings);
    if (strcmp(method, "OPTIONS") == 0) {
        return tell_options(exchange);
    }
    if (exchange->storage == NULL) {
        mdl_problem_set(&exchange->request.problem, 503, "service_unavailable",
                        "The service can't reach its storage.");
        return upload_url_refuse(exchange);
    }
    if ((exchange->id = id_of(r, service)) == NULL) {
        mdl_problem_set(&exchange->request.problem, 404, "upload_not_found",
                        "There is no such upload.");
        return upload_url_refuse(exchange);
    }
    return upload_url_dispatch(exchange, method);
}
