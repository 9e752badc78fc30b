#include "api/routes.h"

#include <apr_time.h>

#include "child_storage.h"
#include "core/node.h"

static apr_status_t health_parse(mdl_request_t *request)
{
    request->arg = apr_pcalloc(request->r->pool, sizeof(apr_int64_t));
    return APR_SUCCESS;
}

static void health_write(mdl_request_t *request)
{
    mdl_json_add_string(request->response, "status", "ok");
}

MDL_EFFECT(mdl_key_epoch, apr_int64_t *)

MDL_EFFECT(mdl_node_list, apr_array_header_t **)

/* A node without a worker relies on another node's. */
static int ready_worker(mdl_request_t *request)
{
    apr_array_header_t *nodes;

    if (request->service->settings->worker) {
        return mdl_readiness_has_worker(request->service->readiness);
    }
    if (mdl_request_run(request, mdl_db_read, mdl_node_list_effect, &nodes) == APR_SUCCESS) {
        for (int i = 0; i < nodes->nelts; i++) {
            if (APR_ARRAY_IDX(nodes, i, mdl_node_t).silence < MDL_NODE_LOST) {
                return 1;
            }
        }
    }
    return 0;
}

/* The connection that the request has, or NULL. */
static mdl_db_t *request_db(const mdl_request_t *request)
{
    return request->connection != NULL ? mdl_connection_db(request->connection) : NULL;
}

static const char *ready_word(int well)
{
    return well ? "ok" : "failing";
}

/* A failing part is reported in the response; the request itself does not fail. */
static void ready_write(mdl_request_t *request)
{
    mdl_readiness_t *readiness = request->service->readiness;
    mdl_ready_t ready;

    if (mdl_readiness_claim(readiness)) {
        apr_status_t rv = mdl_request_run(request, mdl_db_write, mdl_node_try_write, NULL);

        ready.closed = rv == MDL_DB_ECLOSED;
        ready.database = rv == APR_SUCCESS || ready.closed;
        ready.storage = mdl_child_storage_folder_ready(request->service->settings,
                                                       request_db(request), request->r->pool);
        ready.worker = ready_worker(request);
        mdl_readiness_set(readiness, &ready);
    }
    ready = mdl_readiness_get(readiness);
    if (!ready.database || !ready.storage || !ready.worker) {
        request->status = HTTP_SERVICE_UNAVAILABLE;
    }
    mdl_json_add_string(request->response, "status", ready_word(request->status == HTTP_OK));
    mdl_json_add_string(request->response, "database", ready_word(ready.database));
    mdl_json_add_string(request->response, "storage", ready_word(ready.storage));
    mdl_json_add_string(request->response, "worker", ready_word(ready.worker));
    mdl_json_add_bool(request->response, "maintenance", ready.closed);
}

/* Adds a place, or null if the service has none. */
static void places_add(mdl_request_t *request, const char *name, const char *place, int well)
{
    if (place != NULL) {
        mdl_json_add_string(request->response, name, ready_word(well));
    } else {
        mdl_json_add_null(request->response, name);
    }
}

static void places_write(mdl_request_t *request)
{
    const mdl_storage_config_t *storage = &request->service->settings->storage;
    mdl_places_ready_t ready = mdl_child_storage_places(request->service, request_db(request),
                                                        request->r->pool);

    if (!ready.folder || !ready.objects) {
        request->status = HTTP_SERVICE_UNAVAILABLE;
    }
    mdl_json_add_string(request->response, "status", ready_word(request->status == HTTP_OK));
    places_add(request, "folder", storage->folder, ready.folder);
    places_add(request, "objects", storage->objects.url, ready.objects);
}

/* Authentication has read all of this. */
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

const mdl_route_t mdl_health_routes[] = {
    {"GET", "/health", .no_key = 1, .parse = health_parse, .effect = mdl_key_epoch_effect,
     .write = health_write},
    {"GET", "/health/ready", .no_key = 1, .write = ready_write},
    {"GET", "/health/storage", .no_key = 1, .write = places_write},
    {"GET", "/ping", .write = ping_write},
    {0},
};
