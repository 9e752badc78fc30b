/*
 * A request's body as every handler meets it, before anybody reads it.
 */
#ifndef MDL_REQUEST_BODY_H
#define MDL_REQUEST_BODY_H

#include <httpd.h>

/** The Content-Length, -1 for none. */
apr_off_t mdl_request_body_length(request_rec *r);

/**
 * Before a response to a request whose body nobody wants: reads what has arrived of a short one,
 * and has the connection closed rather than wait for the rest or read a long one.
 */
void mdl_request_body_discard(request_rec *r);

#endif
