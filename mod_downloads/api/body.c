#include "api/body.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "base/crypto.h"
#include "base/http/media_type.h"
#include "request_body.h"

static int body_is_json(const char *type)
{
    const char *charset;

    if (type == NULL || !mdl_media_type_is(type, "application/json")) {
        return 0;
    }
    charset = ap_strcasestr(type, "charset=");
    return charset == NULL || strcasecmp(charset, "charset=utf-8") == 0 ||
           strcasecmp(charset, "charset=\"utf-8\"") == 0;
}

static apr_size_t body_limit_of(const mdl_request_t *request)
{
    return request->route->max_body != 0 ? request->route->max_body : MDL_MAX_BODY;
}

static apr_status_t body_too_large(mdl_request_t *request)
{
    request->r->connection->keepalive = AP_CONN_CLOSE;
    mdl_problem_count(&request->problem, (apr_int64_t)body_limit_of(request), -1);
    return mdl_problem_set(&request->problem, 413, "request_too_large",
                           apr_psprintf(request->r->pool,
                                        "The body of this request may have at most %" APR_SIZE_T_FMT
                                        " KiB.",
                                        body_limit_of(request) / 1024));
}

apr_status_t mdl_body_not_received(mdl_request_t *request, apr_status_t rv)
{
    request->r->connection->keepalive = AP_CONN_CLOSE;
    if (rv == AP_FILTER_ERROR) {
        return rv; /* httpd has answered a malformed body itself */
    }
    if (APR_STATUS_IS_TIMEUP(rv)) {
        return mdl_problem_set(&request->problem, 408, "request_timeout",
                               "The body did not arrive in time.");
    }
    return mdl_problem_set(&request->problem, 400, "invalid_request",
                           "The body did not arrive whole.");
}

/* Reads the whole body into a buffer of the pool. */
static apr_status_t body_receive(mdl_request_t *request, char **body, apr_size_t *length)
{
    request_rec *r = request->r;
    const char *shop = apr_psprintf(r->pool, "shop %" APR_INT64_T_FMT, request->caller.shop_id);
    apr_status_t rv = mdl_request_body_read(r, shop, body_limit_of(request), body, length);

    if (rv == APR_SUCCESS) {
        return APR_SUCCESS;
    }
    return APR_STATUS_IS_ENOSPC(rv) ? body_too_large(request) : mdl_body_not_received(request, rv);
}

static apr_status_t body_not_json(mdl_request_t *request)
{
    return mdl_problem_set(&request->problem, 415, "unsupported_media_type",
                           "Send the body as Content-Type: application/json.");
}

static apr_status_t body_parse(mdl_request_t *request, const char *text, apr_size_t length)
{
    apr_size_t max_values = request->route->max_values != 0 ? request->route->max_values
                                                            : MDL_JSON_MAX_VALUES;
    const char *why;
    mdl_json_t *json;
    apr_status_t rv = mdl_json_parse(&json, text, length, max_values, &why, request->r->pool);

    if (rv == APR_ENOSPC) {
        mdl_problem_count(&request->problem, (apr_int64_t)max_values, -1);
        return mdl_problem_set(&request->problem, 413, "request_too_large", why);
    }
    if (rv != APR_SUCCESS) {
        return mdl_problem_set(&request->problem, 400, "invalid_json", why);
    }
    if (mdl_json_type(json) != MDL_JSON_OBJECT) {
        return mdl_problem_set(&request->problem, 400, "invalid_request",
                               "The body must be a JSON object.");
    }
    request->body = json;
    return APR_SUCCESS;
}

static apr_status_t body_encoded(mdl_request_t *request)
{
    return mdl_problem_set(&request->problem, 415, "unsupported_media_type",
                           "Send the body as it is, without a Content-Encoding.");
}

static apr_status_t body_read_json(mdl_request_t *request)
{
    apr_off_t announced = ap_request_has_body(request->r) ? mdl_request_body_length(request->r) : 0;
    int typed = body_is_json(apr_table_get(request->r->headers_in, "Content-Type"));
    /* A body in chunks, or of HTTP/2, may turn out to be empty. */
    int may_be_none = request->route->optional_body && announced <= 0;
    apr_size_t length = 0;
    char *text = NULL;
    apr_status_t rv;

    if (!typed && !may_be_none) {
        return body_not_json(request);
    }
    if (mdl_request_body_is_encoded(request->r)) {
        return body_encoded(request);
    }
    if (announced != 0 && (rv = body_receive(request, &text, &length)) != APR_SUCCESS) {
        return rv;
    }
    if (may_be_none && length == 0) {
        request->body = mdl_json_object(request->r->pool);
        return APR_SUCCESS;
    }
    return typed ? body_parse(request, text, length) : body_not_json(request);
}

static apr_status_t body_wrong_type(mdl_request_t *request)
{
    const char *types = request->route->takes[0];

    for (const char *const *type = request->route->takes + 1; *type != NULL; type++) {
        types = apr_pstrcat(request->r->pool, types, " or ", *type, NULL);
    }
    return mdl_problem_set(
        &request->problem, 415, "unsupported_media_type",
        apr_pstrcat(request->r->pool, "Send the body as Content-Type: ", types, ".", NULL));
}

/* In place of the members there is the digest: an Idempotency-Key is for these bytes alone. */
static apr_status_t body_read_bytes(mdl_request_t *request)
{
    const char *type = apr_table_get(request->r->headers_in, "Content-Type");
    const char *const *takes = request->route->takes;
    mdl_json_t *body = mdl_json_object(request->r->pool);
    unsigned char digest[MDL_SHA256_LENGTH];
    char *bytes;
    apr_status_t rv;

    while (*takes != NULL && (type == NULL || !mdl_media_type_is(type, *takes))) {
        takes++;
    }
    if (*takes == NULL) {
        return body_wrong_type(request);
    }
    if (mdl_request_body_is_encoded(request->r)) {
        return body_encoded(request);
    }
    if ((rv = body_receive(request, &bytes, &request->bytes_length)) != APR_SUCCESS) {
        return rv;
    }
    request->bytes = bytes;
    mdl_sha256(bytes, request->bytes_length, digest);
    mdl_json_add_string(body, "sha256", mdl_hex(digest, sizeof digest, request->r->pool));
    request->body = body;
    return APR_SUCCESS;
}

apr_status_t mdl_body_read(mdl_request_t *request)
{
    return request->route->takes != NULL ? body_read_bytes(request) : body_read_json(request);
}
