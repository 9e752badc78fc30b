/*
 * GET /openapi.json and GET /docs: api/openapi.yaml for programs and for people, as tools/yaml2c
 * compiled it.
 */
#ifndef MDL_API_OPENAPI_H
#define MDL_API_OPENAPI_H

#include "api/request.h"

extern const mdl_route_t mdl_route_openapi;
extern const mdl_route_t mdl_route_docs;

#endif
