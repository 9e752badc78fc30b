#include "delivery/upload.h"

#include <apr_strings.h>
#include <http_protocol.h>

#include "base/json.h"
#include "base/ulid.h"
#include "delivery/body.h"

int mdl_upload_handle(request_rec *r)
{
    const char *unique = apr_table_get(r->subprocess_env, "UNIQUE_ID");
    const char *request_id = unique != NULL ? apr_pstrcat(r->pool, "req_", unique, NULL)
                                            : mdl_ulid("req_", r->pool);
    mdl_json_t *root = mdl_json_object(r->pool);
    mdl_json_t *error = mdl_json_add_object(root, "error");
    apr_size_t length;
    const char *text;

    mdl_json_add_string(error, "code", "upload_not_found");
    mdl_json_add_string(error, "message", "There is no such upload, or it has expired.");
    mdl_json_add_int(error, "status", HTTP_NOT_FOUND);
    mdl_json_add_string(error, "request_id", request_id);
    text = mdl_json_text(root, &length, r->pool);

    mdl_body_leave(r);
    r->status = HTTP_NOT_FOUND;
    apr_table_setn(r->headers_out, "X-Request-Id", request_id);
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    ap_set_content_type(r, "application/json");
    ap_set_content_length(r, (apr_off_t)length);
    ap_rwrite(text, (int)length, r);
    return OK;
}
