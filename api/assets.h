/*
 * POST /assets.
 */
#ifndef MDL_API_ASSETS_H
#define MDL_API_ASSETS_H

#include "api/call.h"

extern const mdl_route_t mdl_route_asset_import;

#endif
