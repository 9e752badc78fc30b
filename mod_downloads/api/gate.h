/*
 * The one way through which every operation goes: key, approval, scope, Idempotency-Key, media type
 * and size, JSON, members, effect, in this order (contract, section 4).  The answer of a write is
 * stored in the transaction of its effect; no operation can go round that.
 */
#ifndef MDL_API_GATE_H
#define MDL_API_GATE_H

#include "api/request.h"

/** Runs call->route and sends the answer; returns an httpd status. */
int mdl_gate_run(mdl_call_t *call);

#endif
