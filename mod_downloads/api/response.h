/*
 * What every answer of the API has in common: headers, the error envelope (contract, sections 1
 * and 4).
 */
#ifndef MDL_API_RESPONSE_H
#define MDL_API_RESPONSE_H

#include "api/request.h"

/** The id of a request: mod_unique_id's, so that logs can be joined, or one made here. */
const char *mdl_answer_request_id(request_rec *r);

/** Sends call->status with a body, of length 0 for none. */
int mdl_answer_send(mdl_call_t *call, const char *body, apr_size_t length);

/** Sends call->refusal as an error. */
int mdl_answer_refusal(mdl_call_t *call);

/** Fills call->refusal for an error of the database, and call->retry_after. */
void mdl_answer_failure(mdl_call_t *call, apr_status_t rv);

#endif
