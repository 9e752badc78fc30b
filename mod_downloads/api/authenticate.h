/*
 * Who calls (contract, section 2).
 */
#ifndef MDL_API_AUTHENTICATE_H
#define MDL_API_AUTHENTICATE_H

#include "api/request.h"
#include "connection.h"

/**
 * Verifies the request's key and fills request->caller.  Takes a connection into *connection only
 * when the cache doesn't do.  Returns MDL_EPROBLEM with 401 (one and the same for a key that is
 * missing, malformed, unknown, wrong, expired or revoked) or 403 shop_not_approved, or the
 * database's error.
 */
apr_status_t mdl_authenticate(mdl_request_t *request, mdl_connection_t **connection);

#endif
