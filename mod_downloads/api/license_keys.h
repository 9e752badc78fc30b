/*
 * GET and POST /license-key-tags, GET, PATCH and DELETE /license-key-tags/{id},
 * POST /license-key-tags/{id}/keys.
 */
#ifndef MDL_API_LICENSE_KEYS_H
#define MDL_API_LICENSE_KEYS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_license_tags;
extern const mdl_route_t mdl_route_license_tag_create;
extern const mdl_route_t mdl_route_license_tag;
extern const mdl_route_t mdl_route_license_tag_change;
extern const mdl_route_t mdl_route_license_tag_delete;
extern const mdl_route_t mdl_route_license_keys_add;

#endif
