/*
 * What all resources of a shop share: the id in the path, and the form of a response.  The argument
 * of an effect is, or begins with, an mdl_entity_ref_t.
 */
#ifndef MDL_API_RESOURCE_H
#define MDL_API_RESOURCE_H

#include "api/request.h"
#include "core/entity_ref.h"

struct mdl_resource_t {
    const char *noun; /* the member that has it in the response to a write: "pack" */
    /** Adds the members of an entity; returns its id, which is its position in a list. */
    const char *(*write)(mdl_json_t *to, mdl_request_t *request, const void *entity);
};

/** An id as text. */
const char *mdl_resource_id(const mdl_request_t *request, apr_int64_t id);

/** Makes request->arg, of size bytes, and begins it with the shop and the id of the path, if it has
    one. */
void *mdl_resource_begin(mdl_request_t *request, apr_size_t size);

/* For the parse of a route: an mdl_entity_ref_t. */
apr_status_t mdl_resource_parse(mdl_request_t *request);
/** The same of a write without members. */
apr_status_t mdl_resource_parse_delete(mdl_request_t *request);

/* For the write of a route: the entity itself; in a member of its noun; the same with 201 and its
   address as Location. */
void mdl_resource_write(mdl_request_t *request);
void mdl_resource_write_changed(mdl_request_t *request);
void mdl_resource_write_created(mdl_request_t *request);
/** 204. */
void mdl_resource_write_deleted(mdl_request_t *request);

#endif
