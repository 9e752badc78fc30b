/*
 * What the resources of a shop have in common: how one is named by its path, and how it stands in
 * a response.  An effect's argument is, or begins with, an mdl_entity_ref_t.
 */
#ifndef MDL_API_RESOURCE_H
#define MDL_API_RESOURCE_H

#include "api/request.h"
#include "core/entity_ref.h"

struct mdl_resource_t {
    const char *noun; /* around it in the response to a write: "pack" */
    /** Adds the members of a thing; returns its id, which is its position in a list. */
    const char *(*write)(mdl_json_t *to, mdl_request_t *request, const void *thing);
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

/* For its write: the thing that was found, as it is, in its noun, or with 201 and its address
   below the path of the request. */
void mdl_resource_write(mdl_request_t *request);
void mdl_resource_write_changed(mdl_request_t *request);
void mdl_resource_write_created(mdl_request_t *request);
/** 204. */
void mdl_resource_write_deleted(mdl_request_t *request);

#endif
