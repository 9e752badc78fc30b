/*
 * A request's body as every handler meets it, before anybody reads it.
 */
#ifndef MDL_REQUEST_H
#define MDL_REQUEST_H

#include <httpd.h>

/** The Content-Length, -1 for none. */
apr_off_t mdl_request_announced(request_rec *r);

/**
 * Before an answer to a request whose body nobody wants: reads a short one away, and has the
 * connection closed rather than a long one taken in.
 */
void mdl_request_leave_body(request_rec *r);

#endif
