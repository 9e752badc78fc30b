/*
 * The body of a write: read, bounded, parsed (contract, section 1).
 */
#ifndef MDL_API_BODY_H
#define MDL_API_BODY_H

#include "api/request.h"

#define MDL_MAX_BODY (256 * 1024)

/** Reads and parses the body into request->body, an object; an empty one where the route lets a
   request come without a body and it does.  Refuses with 415, 413, 408 or 400; AP_FILTER_ERROR when
   httpd has sent a response already. */
apr_status_t mdl_body_read(mdl_request_t *request);

/** What it means that reading a body ended with rv: refused with 408 or 400, or AP_FILTER_ERROR. */
apr_status_t mdl_body_not_received(mdl_request_t *request, apr_status_t rv);

#endif
