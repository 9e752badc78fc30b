/*
 * The operations of /packs.
 */
#ifndef MDL_API_PACKS_H
#define MDL_API_PACKS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_pack_list;
extern const mdl_route_t mdl_route_pack_create;
extern const mdl_route_t mdl_route_pack;
extern const mdl_route_t mdl_route_pack_change;
extern const mdl_route_t mdl_route_pack_delete;

#endif
