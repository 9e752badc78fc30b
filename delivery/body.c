#include "delivery/body.h"

#include <apr_strings.h>

#define WORTH_READING 65536 /* bytes that cost less than another connection */

apr_off_t mdl_body_announced(request_rec *r)
{
    const char *length = apr_table_get(r->headers_in, "Content-Length");

    return length != NULL ? (apr_off_t)apr_atoi64(length) : -1;
}

void mdl_body_leave(request_rec *r)
{
    if (mdl_body_announced(r) > WORTH_READING ||
        apr_table_get(r->headers_in, "Transfer-Encoding") != NULL) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
}
