/*
 * What all responses of the API share: headers, the error envelope (contract, sections 1 and 4).
 */
#ifndef MDL_API_RESPONSE_H
#define MDL_API_RESPONSE_H

#include "api/request.h"

/** Sets the headers that every response has. */
void mdl_response_headers(const mdl_request_t *request);

/** Sends request->status with a body, of length 0 for none; always all of it, without ranges. */
int mdl_response_send(mdl_request_t *request, const char *body, apr_size_t length);

/** The envelope of request->problem. */
const char *mdl_response_problem_text(const mdl_request_t *request, apr_size_t *length);

/** Sends request->problem as an error. */
int mdl_response_problem(mdl_request_t *request);

/** Fills request->problem for an error of the database, and request->retry_after. */
void mdl_response_failure(mdl_request_t *request, apr_status_t rv);

#endif
