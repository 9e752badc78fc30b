#include "api/refusal.h"

#include <string.h>

#include <apr_buckets.h>
#include <apr_strings.h>
#include <httpd.h>
#include <ap_expr.h>
#include <http_config.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <util_filter.h>

#include "api/response.h"
#include "api/router.h"

static ap_filter_rec_t *filter;

static const struct {
    int status;
    const char *code;
} codes[] = {
    {HTTP_UNAUTHORIZED, "unauthorized"},
    {HTTP_FORBIDDEN, "forbidden"},
    {HTTP_NOT_FOUND, "not_found"},
    {HTTP_METHOD_NOT_ALLOWED, "method_not_allowed"},
    {HTTP_REQUEST_TIME_OUT, "request_timeout"},
    {HTTP_REQUEST_ENTITY_TOO_LARGE, "request_too_large"},
    {HTTP_REQUEST_URI_TOO_LARGE, "request_too_large"},
    {HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "request_too_large"},
    {HTTP_SERVICE_UNAVAILABLE, "service_unavailable"},
};

static const char *refusal_code(int status)
{
    for (apr_size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].status == status) {
            return codes[i].code;
        }
    }
    return status < 500 ? "invalid_request" : "internal_error";
}

/* The request's path; the second word of a request line that httpd could not parse. */
static char *refusal_path(request_rec *r)
{
    const char *path = r->uri;
    char *copy;

    if ((path == NULL || *path != '/') && r->the_request != NULL) {
        path = strchr(r->the_request, ' ');
        path = path != NULL ? path + 1 : NULL;
    }
    if (path == NULL || *path != '/') {
        return NULL;
    }
    copy = apr_pstrmemdup(r->pool, path, strcspn(path, " ?"));
    ap_unescape_url(copy); /* what can't be decoded stays */
    ap_no2slash(copy);
    return copy;
}

/* The handler that the request would have reached: httpd may refuse before it looks for one. */
static const char *refusal_handler(request_rec *r)
{
    ap_conf_vector_t *config = r->per_dir_config;
    char *uri = r->uri;
    char *path = refusal_path(r);
    const char *handler = r->handler;

    if (handler == NULL && path != NULL) {
        r->uri = path;
        r->per_dir_config = r->server->lookup_defaults;
        if (ap_location_walk(r) == OK) {
            const core_dir_config *core = ap_get_core_module_config(r->per_dir_config);
            const char *why;

            handler = core->expr_handler != NULL ? ap_expr_str_exec(r, core->expr_handler, &why)
                                                 : NULL;
        }
        r->uri = uri;
        r->per_dir_config = config;
    }
    return handler != NULL ? handler : "";
}

/* Drops httpd's page and sends the envelope at its end. */
static apr_status_t refusal_write(ap_filter_t *f, apr_bucket_brigade *bb)
{
    request_rec *r = f->r;
    mdl_request_t request = {.r = r, .request_id = mdl_request_id(r)};
    int ends = !APR_BRIGADE_EMPTY(bb) && APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(bb));
    apr_size_t length;
    const char *text;

    apr_brigade_cleanup(bb);
    if (!ends) {
        return APR_SUCCESS;
    }
    mdl_problem_set(&request.problem, r->status, refusal_code(r->status),
                    apr_pstrcat(r->pool, "The web server refused this request: ",
                                ap_get_status_line(r->status) + 4, ".", NULL));
    text = mdl_response_problem_text(&request, &length);
    mdl_response_headers(&request);
    ap_set_content_type(r, "application/json");
    ap_set_content_length(r, (apr_off_t)length);
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_pool_create(text, length, r->pool, f->c->bucket_alloc));
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(f->c->bucket_alloc));
    ap_remove_output_filter(f);
    return ap_pass_brigade(f->next, bb);
}

static void refusal_filter_add(request_rec *r)
{
    if (r->status >= HTTP_BAD_REQUEST && !r->assbackwards &&
        strcmp(refusal_handler(r), MDL_API_HANDLER) == 0) {
        ap_add_output_filter_handle(filter, NULL, r, r->connection);
    }
}

void mdl_refusal_register(void)
{
    filter = ap_register_output_filter("DOWNLOADS_REFUSAL", refusal_write, NULL, AP_FTYPE_RESOURCE);
    ap_hook_insert_error_filter(refusal_filter_add, NULL, NULL, APR_HOOK_MIDDLE);
}
