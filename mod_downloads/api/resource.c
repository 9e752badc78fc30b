#include "api/resource.h"

#include <apr_strings.h>

#include "api/members.h"

const char *mdl_resource_id(const mdl_call_t *call, apr_int64_t id)
{
    return apr_psprintf(call->r->pool, "%" APR_INT64_T_FMT, id);
}

void *mdl_resource_begin(mdl_call_t *call, apr_size_t size)
{
    mdl_one_t *one = apr_pcalloc(call->r->pool, size);

    one->shop_id = call->caller.shop_id;
    one->refusal = &call->refusal;
    if (call->parameters[0] != NULL) {
        one->id = mdl_members_path_id(call->parameters[0]);
    }
    call->arg = one;
    return one;
}

apr_status_t mdl_resource_parse(mdl_call_t *call)
{
    mdl_resource_begin(call, sizeof(mdl_one_t));
    return APR_SUCCESS;
}

apr_status_t mdl_resource_parse_delete(mdl_call_t *call)
{
    mdl_resource_begin(call, sizeof(mdl_one_t));
    return mdl_members_none(call);
}

static const char *write_to(mdl_call_t *call, mdl_json_t *to)
{
    return call->route->resource->write(to, call, ((const mdl_one_t *)call->arg)->found);
}

void mdl_resource_write(mdl_call_t *call)
{
    write_to(call, call->answer);
}

void mdl_resource_write_changed(mdl_call_t *call)
{
    write_to(call, mdl_json_add_object(call->answer, call->route->resource->noun));
}

void mdl_resource_write_created(mdl_call_t *call)
{
    const char *id = write_to(call, mdl_json_add_object(call->answer, call->route->resource->noun));

    call->status = HTTP_CREATED;
    call->location = apr_pstrcat(call->r->pool, call->root, call->path, "/", id, NULL);
}

void mdl_resource_write_deleted(mdl_call_t *call)
{
    call->status = HTTP_NO_CONTENT;
}
