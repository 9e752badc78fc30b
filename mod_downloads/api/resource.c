#include "api/resource.h"

#include <apr_strings.h>

#include "api/members.h"
#include "core/identifier.h"

const char *mdl_resource_id(const mdl_request_t *request, apr_int64_t id)
{
    return apr_psprintf(request->r->pool, "%" APR_INT64_T_FMT, id);
}

mdl_entity_ref_t mdl_resource_ref(mdl_request_t *request)
{
    return (mdl_entity_ref_t){.shop_id = request->caller.shop_id,
                              .id = mdl_identifier_parse(request->parameters[0]),
                              .versions = request->versions,
                              .problem = &request->problem};
}

void *mdl_resource_begin(mdl_request_t *request, apr_size_t size)
{
    mdl_entity_ref_t *ref = request->arg = apr_pcalloc(request->r->pool, size);

    *ref = mdl_resource_ref(request);
    return ref;
}

apr_status_t mdl_resource_parse(mdl_request_t *request)
{
    mdl_resource_begin(request, sizeof(mdl_entity_ref_t));
    return APR_SUCCESS;
}

apr_status_t mdl_resource_parse_delete(mdl_request_t *request)
{
    mdl_resource_begin(request, sizeof(mdl_entity_ref_t));
    return mdl_members_none(request);
}

static const char *resource_write(mdl_request_t *request)
{
    return request->route->write_entity(request->response, request,
                                        ((const mdl_entity_ref_t *)request->arg)->entity);
}

void mdl_resource_write(mdl_request_t *request)
{
    resource_write(request);
}

void mdl_resource_write_created(mdl_request_t *request)
{
    request->entity_id = resource_write(request);
    request->status = HTTP_CREATED;
    request->location = apr_pstrcat(request->r->pool, request->root, request->path, "/",
                                    request->entity_id, NULL);
}

void mdl_resource_write_deleted(mdl_request_t *request)
{
    request->status = HTTP_NO_CONTENT;
}

const mdl_json_t *mdl_resource_entity(const mdl_request_t *request)
{
    const mdl_json_t *member = request->route->noun != NULL
                                   ? mdl_json_member(request->response, request->route->noun)
                                   : NULL;

    return member != NULL ? member : request->response;
}
