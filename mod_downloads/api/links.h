/*
 * The operations of /links.
 */
#ifndef MDL_API_LINKS_H
#define MDL_API_LINKS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_link_list;
extern const mdl_route_t mdl_route_link_create;
extern const mdl_route_t mdl_route_link;
extern const mdl_route_t mdl_route_link_change;
extern const mdl_route_t mdl_route_link_delete;

#endif
