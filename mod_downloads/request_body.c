#include "request_body.h"

#include <apr_strings.h>
#include <http_protocol.h>

#define WORTH_READING 65536 /* bytes that cost less than another connection */

apr_off_t mdl_request_body_length(request_rec *r)
{
    const char *length = apr_table_get(r->headers_in, "Content-Length");

    return length != NULL ? (apr_off_t)apr_atoi64(length) : -1;
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
