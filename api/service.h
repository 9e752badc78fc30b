/*
 * GET /health and GET /ping.
 */
#ifndef MDL_API_SERVICE_H
#define MDL_API_SERVICE_H

#include "api/call.h"

extern const mdl_route_t mdl_route_health;
extern const mdl_route_t mdl_route_ping;

#endif
