/*
 * The rate limit of a key as requests meet it (contract, section 5; draft-ietf-httpapi-ratelimit-
 * headers for RateLimit and RateLimit-Policy).
 */
#ifndef MDL_API_RATE_H
#define MDL_API_RATE_H

#include "api/request.h"

/** Charges the request to its key and tells the client; refuses with 429 rate_limited. */
apr_status_t mdl_rate_charge(mdl_request_t *request, int writes);

/** Tells the client how its key stands, and charges nothing. */
void mdl_rate_show(mdl_request_t *request);

#endif
