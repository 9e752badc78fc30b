/*
 * Every operation passes here: key, approval, scope, rate, Idempotency-Key, media type and size,
 * JSON, members, effect, in this order (contract, section 4).  The response of a write is stored in
 * the transaction of its effect.
 */
#ifndef MDL_API_GATE_H
#define MDL_API_GATE_H

#include "api/request.h"

/** Runs request->route and sends the response; returns an httpd status. */
int mdl_gate_run(mdl_request_t *request);

#endif
