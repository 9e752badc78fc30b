/*
 * The body of a write: read, bounded, parsed (contract, section 1).
 */
#ifndef MDL_API_BODY_H
#define MDL_API_BODY_H

#include "api/request.h"

#define MDL_MAX_BODY (256 * 1024)

/** Reads and parses the body into request->body, an object.  A missing body is an empty object if
    the route allows that.  Refuses with 415, 413, 408 or 400; AP_FILTER_ERROR when httpd has sent a
    response already. */
apr_status_t mdl_body_read(mdl_request_t *request);

/** Refuses with 408 or 400 after reading a body failed with rv; or returns AP_FILTER_ERROR. */
apr_status_t mdl_body_not_received(mdl_request_t *request, apr_status_t rv);

#endif
