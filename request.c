#include "request.h"

#include <apr_strings.h>
#include <http_protocol.h>

#define WORTH_READING 65536 /* bytes that cost less than another connection */

apr_off_t mdl_request_announced(request_rec *r)
{
    const char *length = apr_table_get(r->headers_in, "Content-Length");

    return length != NULL ? (apr_off_t)apr_atoi64(length) : -1;
}

void mdl_request_leave_body(request_rec *r)
{
    if (mdl_request_announced(r) > WORTH_READING ||
        apr_table_get(r->headers_in, "Transfer-Encoding") != NULL) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
    ap_discard_request_body(r);
}
