#include "upload/cors.h"

#include <string.h>
#include <strings.h>

#define PREFLIGHT_LIFETIME "7200" /* seconds; no browser keeps it longer */

/* A page of the settings uploads files. */
static int cors_is_of_settings(const mdl_settings_t *settings, const char *origin)
{
    apr_size_t length = strlen(origin);

    return settings->settings_url != NULL &&
           strncasecmp(settings->settings_url, origin, length) == 0 &&
           strchr("/", settings->settings_url[length]) != NULL;
}

static const char *cors_allowed(const mdl_settings_t *settings, const char *origin)
{
    const apr_array_header_t *origins = settings->upload_origins;

    for (int i = 0; i < origins->nelts; i++) {
        const char *entry = APR_ARRAY_IDX(origins, i, const char *);

        if (strcmp(entry, "*") == 0 || strcasecmp(entry, origin) == 0) {
            return strcmp(entry, "*") == 0 ? entry : origin;
        }
    }
    return cors_is_of_settings(settings, origin) ? origin : NULL;
}

void mdl_upload_cors(request_rec *r, const mdl_settings_t *settings)
{
    /* Headers that are sent with every status, also with a response that httpd makes. */
    apr_table_t *headers = r->err_headers_out;
    const char *origin = apr_table_get(r->headers_in, "Origin");
    const char *response;

    if (settings->upload_origins->nelts == 0 && settings->settings_url == NULL) {
        return;
    }
    apr_table_mergen(headers, "Vary", "Origin");
    if (origin == NULL || (response = cors_allowed(settings, origin)) == NULL) {
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
