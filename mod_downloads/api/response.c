#include "api/response.h"

#include <string.h>

#include <apr_strings.h>
#include <http_log.h>
#include <http_protocol.h>

#include "base/ulid.h"

APLOG_USE_MODULE(downloads);

const char *mdl_answer_request_id(request_rec *r)
{
    const char *unique = apr_table_get(r->subprocess_env, "UNIQUE_ID");

    return unique != NULL ? apr_pstrcat(r->pool, "req_", unique, NULL) : mdl_ulid("req_", r->pool);
}

int mdl_answer_send(mdl_call_t *call, const char *body, apr_size_t length)
{
    request_rec *r = call->r;

    r->status = call->status;
    apr_table_setn(r->headers_out, "X-Request-Id", call->request_id);
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    if (call->location != NULL) {
        apr_table_setn(r->headers_out, "Location", call->location);
    }
    if (call->retry_after > 0) {
        apr_table_setn(r->headers_out, "Retry-After", apr_itoa(r->pool, call->retry_after));
    }
    if (length > 0) {
        ap_set_content_type(r, "application/json");
        ap_set_content_length(r, (apr_off_t)length);
        ap_rwrite(body, (int)length, r);
    }
    return OK;
}

int mdl_answer_refusal(mdl_call_t *call)
{
    const mdl_refusal_t *refusal = &call->refusal;
    apr_pool_t *p = call->r->pool;
    mdl_json_t *root = mdl_json_object(p);
    mdl_json_t *error = mdl_json_add_object(root, "error");
    apr_size_t length;
    const char *text;

    mdl_json_add_string(error, "code", refusal->code);
    mdl_json_add_string(error, "message", refusal->message);
    mdl_json_add_int(error, "status", refusal->status);
    mdl_json_add_string(error, "request_id", call->request_id);
    if (refusal->details != NULL) {
        mdl_json_t *details = mdl_json_add_array(error, "details");

        for (int i = 0; i < refusal->details->nelts; i++) {
            const mdl_detail_t *detail = &APR_ARRAY_IDX(refusal->details, i, mdl_detail_t);
            mdl_json_t *entry = mdl_json_add_object(details, NULL);

            mdl_json_add_string(entry, "pointer", detail->pointer);
            mdl_json_add_string(entry, "code", detail->code);
            mdl_json_add_string(entry, "message", detail->message);
        }
    }
    call->status = refusal->status;
    call->location = NULL;
    text = mdl_json_text(root, &length, p);
    return mdl_answer_send(call, text, length);
}

void mdl_answer_failure(mdl_call_t *call, apr_status_t rv)
{
    mdl_refusal_clear(&call->refusal);
    switch (rv) {
    case MDL_DB_EGONE:
    case MDL_DB_EBUSY:
        call->retry_after = 1;
        mdl_refuse(&call->refusal, 503, "service_unavailable",
                   "The service can't reach its database for the moment; try again.");
        break;
    case MDL_DB_EFULL:
        mdl_refuse(&call->refusal, 507, "insufficient_storage",
                   "The service has no room to store this.");
        break;
    default:
        ap_log_rerror(APLOG_MARK, APLOG_ERR, rv >= APR_OS_START_USERERR ? 0 : rv, call->r,
                      "MDL0201: %s %s failed (%s)", call->r->method, call->path, call->request_id);
        mdl_refuse(&call->refusal, 500, "internal_error",
                   "Something went wrong on our side; nothing was changed.");
    }
}
