/*
 * POST /mappings.
 */
#ifndef MDL_API_MAPPINGS_H
#define MDL_API_MAPPINGS_H

#include "api/call.h"

extern const mdl_route_t mdl_route_mapping_put;

#endif
