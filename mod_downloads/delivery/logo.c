#include "delivery/logo.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "base/crypto.h"
#include "connection.h"
#include "core/shop/logo.h"
#include "delivery/customer.h"
#include "delivery/view.h"

#define EXTENSION ".png"

MDL_EFFECT(mdl_logo_find, mdl_logo_find_t *)

static apr_status_t logo_find(request_rec *r, const mdl_service_t *service, const char *name,
                              mdl_logo_find_t *find)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_connection_t *connection;
    apr_status_t rv;

    find->sha256 = apr_pstrndup(r->pool, name, MDL_SHA256_HEX_LENGTH);
    if (mdl_hex_decode(digest, sizeof digest, find->sha256) != APR_SUCCESS ||
        strcmp(name + MDL_SHA256_HEX_LENGTH, EXTENSION) != 0) {
        return APR_ENOENT;
    }
    rv = mdl_customer_charge(r, service, mdl_rate_limit_network(r->useragent_ip, r->pool));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if ((connection = mdl_connection_open(r)) == NULL) {
        return MDL_DB_EGONE;
    }
    rv = mdl_db_read(mdl_connection_db(connection), mdl_logo_find_effect, find, r->pool);
    mdl_connection_close(connection);
    return rv;
}

static int logo_send(request_rec *r, const mdl_logo_find_t *find)
{
    apr_table_t *headers = r->headers_out;
    int status;

    apr_table_setn(headers, "Cache-Control", "public, max-age=31536000, immutable");
    apr_table_setn(headers, "ETag", apr_pstrcat(r->pool, "\"", find->sha256, "\"", NULL));
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
    apr_table_setn(headers, "Content-Security-Policy", "default-src 'none'");
    ap_set_content_type(r, "image/png");
    if ((status = ap_meets_conditions(r)) != OK) {
        return status;
    }
    ap_set_content_length(r, (apr_off_t)find->length);
    ap_rwrite(find->png, (int)find->length, r);
    return OK;
}

int mdl_logo_serve(request_rec *r, const mdl_service_t *service, const char *name)
{
    mdl_logo_find_t find = {0};
    apr_status_t rv = logo_find(r, service, name, &find);

    return rv == APR_SUCCESS ? logo_send(r, &find) : mdl_view_failure(r, rv, "page_not_found");
}

int mdl_logo_wrong_method(request_rec *r, const mdl_service_t *service, const char *name)
{
    (void)service;
    (void)name;
    return mdl_view_message(r, HTTP_METHOD_NOT_ALLOWED, "wrong_method", NULL);
}
