/*
 * The rate limits of a key and of its shop (contract, section 5;
 * draft-ietf-httpapi-ratelimit-headers for RateLimit and RateLimit-Policy).  The headers show the
 * limit that has less left.
 */
#ifndef MDL_API_RATE_H
#define MDL_API_RATE_H

#include "api/request.h"

/** Charges the request to its key and shop and sets the headers; refuses with 429 rate_limited,
    which costs nothing. */
apr_status_t mdl_rate_charge(mdl_request_t *request, int writes);

/** Charges the rows that the request has read to its key and shop, and sets the headers.  The
    balance may become negative. */
void mdl_rate_charge_rows(mdl_request_t *request);

/** Charges a request that needs no key to its network; refuses likewise. */
apr_status_t mdl_rate_charge_open(mdl_request_t *request);

/** Logs an invalid key and charges it to its network; refuses likewise. */
apr_status_t mdl_rate_charge_forged(mdl_request_t *request);

/** Sets the headers and charges nothing. */
void mdl_rate_show(mdl_request_t *request);

#endif
