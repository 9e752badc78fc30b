/*
 * GET /openapi.json: api/openapi.yaml, as tools/yaml2c compiled it.
 */
#ifndef MDL_API_OPENAPI_H
#define MDL_API_OPENAPI_H

#include "api/request.h"

extern const mdl_route_t mdl_route_openapi;

#endif
