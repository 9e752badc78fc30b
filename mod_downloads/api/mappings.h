/*
 * The operations of /mappings.
 */
#ifndef MDL_API_MAPPINGS_H
#define MDL_API_MAPPINGS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_mapping_list;
extern const mdl_route_t mdl_route_mapping_put;
extern const mdl_route_t mdl_route_mapping;
extern const mdl_route_t mdl_route_mapping_replace;
extern const mdl_route_t mdl_route_mapping_change;
extern const mdl_route_t mdl_route_mapping_delete;

#endif
