/*
 * What all resources of a shop share: the id in the path, and the form of a response.  The argument
 * of an effect is, or begins with, an mdl_entity_ref_t.
 */
#ifndef MDL_API_RESOURCE_H
#define MDL_API_RESOURCE_H

#include "api/request.h"
#include "core/entity_ref.h"

/** An id as text. */
const char *mdl_resource_id(const mdl_request_t *request, apr_int64_t id);

/** The caller's shop, and the id in the path if there is one. */
mdl_entity_ref_t mdl_resource_ref(mdl_request_t *request);

/** Allocates request->arg, of size bytes, and fills the mdl_entity_ref_t at its beginning. */
void *mdl_resource_begin(mdl_request_t *request, apr_size_t size);

/** Parses an mdl_entity_ref_t from the path: the parse of a route without a body. */
apr_status_t mdl_resource_parse(mdl_request_t *request);

/** mdl_resource_parse for a write, whose body has no members. */
apr_status_t mdl_resource_parse_delete(mdl_request_t *request);

/** Writes the entity. */
void mdl_resource_write(mdl_request_t *request);

/** Does the same with status 201, and the entity's address in Location. */
void mdl_resource_write_created(mdl_request_t *request);

/** Writes status 204. */
void mdl_resource_write_deleted(mdl_request_t *request);

/** The response's entity: itself or, if it has two, its member named by the route's noun. */
const mdl_json_t *mdl_resource_entity(const mdl_request_t *request);

#endif
