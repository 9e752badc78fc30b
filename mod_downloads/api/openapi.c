#include "api/routes.h"

#include "api/etag.h"
#include "api/openapi_text.h"

static void openapi_write_text(mdl_request_t *request, const char *text, const char *etag)
{
    apr_table_setn(request->r->headers_out, "ETag", etag);
    if (mdl_etag_known(request)) {
        request->status = HTTP_NOT_MODIFIED;
        request->text = "";
    } else {
        request->text = text;
    }
}

static void openapi_write(mdl_request_t *request)
{
    openapi_write_text(request, mdl_openapi_text, mdl_openapi_etag);
}

static void docs_write(mdl_request_t *request)
{
    apr_table_t *headers = request->r->headers_out;

    apr_table_setn(headers, "Content-Security-Policy", mdl_docs_policy);
    apr_table_setn(headers, "Referrer-Policy", "no-referrer");
    openapi_write_text(request, mdl_docs_text, mdl_docs_etag);
}

const mdl_route_t mdl_openapi_routes[] = {
    {"GET", "/openapi.json", .no_key = 1, .cache_control = "no-cache", .write = openapi_write},
    {"GET", "/docs", .no_key = 1, .cache_control = "no-cache",
     .content_type = "text/html; charset=utf-8", .write = docs_write},
    {0},
};
