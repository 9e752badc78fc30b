/*
 * The rate limits of a key and of its shop as requests meet them (contract, section 5;
 * draft-ietf-httpapi-ratelimit-headers for RateLimit and RateLimit-Policy).  The client is told of
 * the one that has less left.
 */
#ifndef MDL_API_RATE_H
#define MDL_API_RATE_H

#include "api/request.h"

/** Charges the request to its key and shop and tells the client; refuses with 429 rate_limited,
   which costs nothing. */
apr_status_t mdl_rate_charge(mdl_request_t *request, int writes);

/** Charges what the request has read to its key and shop, and tells the client.  They may owe it.
 */
void mdl_rate_charge_rows(mdl_request_t *request);

/** Charges a request that needs no key to its network; refuses likewise. */
apr_status_t mdl_rate_charge_open(mdl_request_t *request);

/** Logs a key that was refused and charges it to its network; refuses likewise. */
apr_status_t mdl_rate_charge_forged(mdl_request_t *request);

/** Tells the client how its key, or the shop, stands, and charges nothing. */
void mdl_rate_show(mdl_request_t *request);

#endif
