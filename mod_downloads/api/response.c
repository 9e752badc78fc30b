#include "api/response.h"

#include <string.h>

#include <apr_strings.h>
#include <http_log.h>
#include <http_protocol.h>

#include "core/closed.h"

APLOG_USE_MODULE(downloads);

/* Whether the response is the route's own, not a problem. */
static int response_succeeds(const mdl_request_t *request)
{
    return request->route != NULL && request->problem.code == NULL;
}

void mdl_response_headers(const mdl_request_t *request)
{
    apr_table_t *headers = request->r->headers_out;

    apr_table_setn(headers, "X-Request-Id", request->request_id);
    apr_table_setn(headers, "Cache-Control",
                   response_succeeds(request) && request->route->cache_control != NULL
                       ? request->route->cache_control
                       : "no-store");
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
}

int mdl_response_send(mdl_request_t *request, const char *body, apr_size_t length)
{
    request_rec *r = request->r;

    r->status = request->status;
    mdl_response_headers(request);
    if (request->location != NULL) {
        apr_table_setn(r->headers_out, "Location", request->location);
    }
    if (request->retry_after > 0) {
        apr_table_setn(r->headers_out, "Retry-After", apr_itoa(r->pool, request->retry_after));
    }
    if (length > 0) {
        apr_table_unset(r->headers_in, "Range"); /* or the byterange filter would cut the answer */
        ap_set_content_type(r, response_succeeds(request) && request->route->content_type != NULL
                                   ? request->route->content_type
                                   : "application/json");
        ap_set_content_length(r, (apr_off_t)length);
        ap_rwrite(body, (int)length, r);
    }
    return OK;
}

const char *mdl_response_problem_text(const mdl_request_t *request, apr_size_t *length)
{
    const mdl_problem_t *problem = &request->problem;
    apr_pool_t *p = request->r->pool;
    mdl_json_t *root = mdl_json_object(p);
    mdl_json_t *error = mdl_json_add_object(root, "error");

    mdl_json_add_string(error, "code", problem->code);
    mdl_json_add_string(error, "message", problem->message);
    mdl_json_add_int(error, "status", problem->status);
    mdl_json_add_string(error, "request_id", request->request_id);
    if (problem->limit > 0) {
        mdl_json_add_int(error, "limit", problem->limit);
    }
    if (problem->has_count) {
        mdl_json_add_int(error, "count", problem->count);
    }
    if (problem->details != NULL) {
        mdl_json_t *details = mdl_json_add_array(error, "details");

        for (int i = 0; i < problem->details->nelts; i++) {
            const mdl_problem_detail_t *detail = &APR_ARRAY_IDX(problem->details, i,
                                                                mdl_problem_detail_t);
            mdl_json_t *entry = mdl_json_add_object(details, NULL);

            mdl_json_add_string(entry, "pointer", detail->pointer);
            mdl_json_add_string(entry, "code", detail->code);
            mdl_json_add_string(entry, "message", detail->message);
        }
    }
    return mdl_json_text(root, length, p);
}

int mdl_response_problem(mdl_request_t *request)
{
    apr_size_t length;
    const char *text = mdl_response_problem_text(request, &length);

    request->status = request->problem.status;
    request->location = NULL;
    return mdl_response_send(request, text, length);
}

void mdl_response_failure(mdl_request_t *request, apr_status_t rv)
{
    mdl_problem_clear(&request->problem);
    switch (rv) {
    case MDL_DB_EGONE:
    case MDL_DB_EBUSY:
    case MDL_DB_ELOCKED:
        request->retry_after = 1;
        mdl_problem_set(&request->problem, 503, "service_unavailable",
                        "The service can't reach its database for the moment; try again.");
        break;
    case MDL_DB_ENEWER:
        request->retry_after = 1;
        mdl_problem_set(&request->problem, 503, "service_unavailable",
                        "This node is being upgraded; try again.");
        break;
    case MDL_DB_ECLOSED:
        request->retry_after = MDL_CLOSED_WAIT;
        mdl_problem_set(&request->problem, 503, "maintenance",
                        "The operator has closed the service to changes for a while; reads go on.");
        break;
    case MDL_DB_EFULL:
        mdl_problem_set(&request->problem, 507, "insufficient_storage",
                        "The service has no room to store this.");
        break;
    default:
        ap_log_rerror(APLOG_MARK, APLOG_ERR, rv >= APR_OS_START_USERERR ? 0 : rv, request->r,
                      "MDL0201: %s %s failed (%s)", request->r->method, request->path,
                      request->request_id);
        mdl_problem_set(&request->problem, 500, "internal_error",
                        "Something went wrong on our side; nothing was changed.");
    }
}
