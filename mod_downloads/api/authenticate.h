/*
 * Authentication by an API key (contract, section 2).
 */
#ifndef MDL_API_AUTHENTICATE_H
#define MDL_API_AUTHENTICATE_H

#include "api/request.h"

/**
 * Verifies the request's key and fills request->caller, whose key_id is empty unless the key is
 * valid.  Returns the database's error or MDL_EPROBLEM: 401, the same for a key that is missing,
 * malformed, unknown, wrong, expired or revoked; 429 in its place when the network has sent too
 * many such keys; 403 shop_not_approved or shop_blocked.
 */
apr_status_t mdl_authenticate(mdl_request_t *request);

#endif
