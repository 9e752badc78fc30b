#include "request_body.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>
#include <util_script.h>

#include "base/http/media_type.h"

#define FORM_TYPE     "application/x-www-form-urlencoded"
#define WORTH_READING 65536 /* bytes that cost less than another connection */

apr_off_t mdl_request_body_length(request_rec *r)
{
    const char *length = apr_table_get(r->headers_in, "Content-Length");

    return length != NULL ? (apr_off_t)apr_atoi64(length) : -1;
}

int mdl_request_body_is_encoded(request_rec *r)
{
    const char *codings = apr_table_get(r->headers_in, "Content-Encoding");
    const char *coding;

    while (codings != NULL && (coding = ap_get_list_item(r->pool, &codings)) != NULL) {
        if (strcmp(coding, "identity") != 0) {
            return 1;
        }
    }
    return 0;
}

/* Reads what has arrived, without waiting and no more than is worth it; true when that was all. */
static int request_body_drain(request_rec *r)
{
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    apr_off_t length, taken = 0;
    int ended = 0;

    while (!ended && taken <= WORTH_READING &&
           ap_get_brigade(r->input_filters, brigade, AP_MODE_READBYTES, APR_NONBLOCK_READ,
                          WORTH_READING) == APR_SUCCESS &&
           !APR_BRIGADE_EMPTY(brigade) && apr_brigade_length(brigade, 1, &length) == APR_SUCCESS) {
        ended = APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(brigade));
        taken += length;
        apr_brigade_cleanup(brigade);
    }
    return ended;
}

void mdl_request_body_discard(request_rec *r)
{
    if (ap_request_has_body(r) && (r->expecting_100 || mdl_request_body_length(r) > WORTH_READING ||
                                   !request_body_drain(r))) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
}

/* Checked before it is read: httpd's reader takes in all of a body, however long it is. */
static int form_check(request_rec *r, apr_size_t max_length)
{
    const char *type = apr_table_get(r->headers_in, "Content-Type");
    apr_off_t length = mdl_request_body_length(r);

    if (type == NULL || !mdl_media_type_is(type, FORM_TYPE) || mdl_request_body_is_encoded(r)) {
        return HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    if (length < 0) {
        return HTTP_LENGTH_REQUIRED;
    }
    return length > (apr_off_t)max_length ? HTTP_REQUEST_ENTITY_TOO_LARGE : OK;
}

int mdl_request_body_form(request_rec *r, apr_size_t max_length, apr_size_t max_fields,
                          apr_table_t **fields)
{
    apr_array_header_t *pairs;
    int status = form_check(r, max_length);

    if (status != OK ||
        (status = ap_parse_form_data(r, NULL, &pairs, max_fields, max_length)) != OK) {
        return status;
    }
    *fields = apr_table_make(r->pool, pairs->nelts);
    for (int i = 0; i < pairs->nelts; i++) {
        const ap_form_pair_t *pair = &APR_ARRAY_IDX(pairs, i, ap_form_pair_t);
        apr_size_t length;
        char *value;

        if (apr_brigade_pflatten(pair->value, &value, &length, r->pool) != APR_SUCCESS) {
            return HTTP_BAD_REQUEST;
        }
        if (apr_table_get(*fields, pair->name) == NULL) {
            apr_table_setn(*fields, pair->name, apr_pstrmemdup(r->pool, value, length));
        }
    }
    return OK;
}
