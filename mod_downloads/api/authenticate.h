/*
 * Who calls (contract, section 2).
 */
#ifndef MDL_API_AUTHENTICATE_H
#define MDL_API_AUTHENTICATE_H

#include "api/request.h"

/**
 * Verifies the request's key and fills request->caller; its key_id is empty unless the key is
 * valid.  Returns MDL_EPROBLEM with 401 (one and the same for a key that is missing, malformed,
 * unknown, wrong, expired or revoked), 429 (in its place for a network that has sent too many such
 * keys) or 403 shop_not_approved, or the database's error.
 */
apr_status_t mdl_authenticate(mdl_request_t *request);

#endif
