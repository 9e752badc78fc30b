/*
 * Imports: POST /assets and POST /assets/{id}/versions.
 */
#ifndef MDL_API_IMPORTS_H
#define MDL_API_IMPORTS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_asset_import;
extern const mdl_route_t mdl_route_asset_version;

#endif
