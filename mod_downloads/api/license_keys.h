/*
 * GET and POST /license-key-tags, GET, PATCH and DELETE /license-key-tags/{id},
 * GET and POST /license-key-tags/{id}/keys, DELETE /license-key-tags/{id}/keys/{key_id}.
 */
#ifndef MDL_API_LICENSE_KEYS_H
#define MDL_API_LICENSE_KEYS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_license_tags;
extern const mdl_route_t mdl_route_license_tag_create;
extern const mdl_route_t mdl_route_license_tag;
extern const mdl_route_t mdl_route_license_tag_change;
extern const mdl_route_t mdl_route_license_tag_delete;
extern const mdl_route_t mdl_route_license_keys;
extern const mdl_route_t mdl_route_license_keys_add;
extern const mdl_route_t mdl_route_license_key_delete;

#endif
