/*
 * GET /health and GET /ping.
 */
#ifndef MDL_API_STATUS_H
#define MDL_API_STATUS_H

#include "api/call.h"

extern const mdl_route_t mdl_route_health;
extern const mdl_route_t mdl_route_ping;

#endif
