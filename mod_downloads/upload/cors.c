#include "upload/cors.h"

#include <string.h>
#include <strings.h>

#define PREFLIGHT_LIFETIME "7200" /* seconds; no browser keeps it longer */

static const char *cors_allowed(const apr_array_header_t *origins, const char *origin)
{
    for (int i = 0; i < origins->nelts; i++) {
        const char *entry = APR_ARRAY_IDX(origins, i, const char *);

        if (strcmp(entry, "*") == 0 || strcasecmp(entry, origin) == 0) {
            return strcmp(entry, "*") == 0 ? entry : origin;
        }
    }
    return NULL;
}

void mdl_upload_cors(request_rec *r, const mdl_settings_t *settings)
{
    /* Headers that are sent with every status, also with a response that httpd makes. */
    apr_table_t *headers = r->err_headers_out;
    const char *origin = apr_table_get(r->headers_in, "Origin");
    const char *response;

    if (settings->upload_origins->nelts == 0) {
        return;
    }
    apr_table_mergen(headers, "Vary", "Origin");
    if (origin == NULL || (response = cors_allowed(settings->upload_origins, origin)) == NULL) {
        return;
    }
    apr_table_setn(headers, "Access-Control-Allow-Origin", response);
    apr_table_setn(headers, "Access-Control-Expose-Headers",
                   "Retry-After, Tus-Checksum-Algorithm, Tus-Extension, Tus-Max-Size, "
                   "Tus-Resumable, Tus-Version, Upload-Defer-Length, Upload-Expires, "
                   "Upload-Length, Upload-Offset, X-Request-Id");
    if (r->method_number == M_OPTIONS &&
        apr_table_get(r->headers_in, "Access-Control-Request-Method") != NULL) {
        apr_table_setn(headers, "Access-Control-Allow-Methods",
                       "DELETE, HEAD, OPTIONS, PATCH, POST, PUT");
        apr_table_setn(headers, "Access-Control-Allow-Headers",
                       "Content-Type, Tus-Resumable, Upload-Checksum, Upload-Length, "
                       "Upload-Offset, X-HTTP-Method-Override, X-Request-Id, X-Requested-With");
        apr_table_setn(headers, "Access-Control-Max-Age", PREFLIGHT_LIFETIME);
    }
}
