/*
 * GET /health, GET /health/ready and GET /ping.
 */
#ifndef MDL_API_HEALTH_H
#define MDL_API_HEALTH_H

#include "api/request.h"

extern const mdl_route_t mdl_route_health;
extern const mdl_route_t mdl_route_health_ready;
extern const mdl_route_t mdl_route_ping;

#endif
