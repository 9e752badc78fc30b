#include "api/openapi.h"

#include <http_protocol.h>

#include "api/openapi_text.h"

static void openapi_write(mdl_request_t *request)
{
    apr_table_setn(request->r->headers_out, "ETag", mdl_openapi_etag);
    if (ap_meets_conditions(request->r) == HTTP_NOT_MODIFIED) {
        request->status = HTTP_NOT_MODIFIED;
        request->text = "";
    } else {
        request->text = mdl_openapi_text;
    }
}

const mdl_route_t mdl_route_openapi = {
    .method = "GET",
    .path = "/openapi.json",
    .no_key = 1,
    .cache_control = "no-cache",
    .write = openapi_write,
};
