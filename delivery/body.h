/*
 * A request's body that nobody wants.
 */
#ifndef MDL_DELIVERY_BODY_H
#define MDL_DELIVERY_BODY_H

#include <httpd.h>

/** The Content-Length, -1 for none. */
apr_off_t mdl_body_announced(request_rec *r);

/**
 * Before an answer to a request whose body is not read: the connection is closed rather than a
 * large body taken in.
 */
void mdl_body_leave(request_rec *r);

#endif
