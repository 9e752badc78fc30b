#include "api/health.h"

#include <apr_time.h>

static apr_status_t health_parse(mdl_request_t *request)
{
    request->arg = apr_pcalloc(request->r->pool, sizeof(apr_int64_t));
    return APR_SUCCESS;
}

static void health_write(mdl_request_t *request)
{
    mdl_json_add_string(request->response, "status", "ok");
}

static apr_status_t health_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_key_epoch(db, p, arg);
}

const mdl_route_t mdl_route_health = {
    .method = "GET",
    .path = "/health",
    .no_key = 1,
    .parse = health_parse,
    .effect = health_effect,
    .write = health_write,
};

/* All of it is known from the key. */
static void ping_write(mdl_request_t *request)
{
    const mdl_caller_t *caller = &request->caller;
    mdl_json_t *object;

    mdl_json_add_bool(request->response, "ok", 1);
    object = mdl_json_add_object(request->response, "shop");
    mdl_json_add_int(object, "id", caller->shop_id);
    mdl_json_add_string(object, "name", caller->shop_name);
    mdl_json_add_string(object, "domain", caller->shop_domain);
    object = mdl_json_add_object(request->response, "key");
    mdl_json_add_string(object, "id", caller->key_id);
    mdl_json_add_string(object, "name", caller->key_name);
    mdl_json_add_string(object, "scope", mdl_key_scope_names[caller->scope]);
    mdl_json_add_string(request->response, "api_version", "v1");
    mdl_json_add_time(request->response, "server_time", apr_time_now());
}

const mdl_route_t mdl_route_ping = {
    .method = "GET",
    .path = "/ping",
    .write = ping_write,
};
