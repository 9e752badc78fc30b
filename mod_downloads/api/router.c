#include "api/router.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "api/gate.h"
#include "api/response.h"
#include "api/routes.h"
#include "request_body.h"
#include "request_notes.h"
#include "tls.h"

static const mdl_route_t *const resources[] = {
    mdl_openapi_routes,  mdl_health_routes,       mdl_asset_routes,      mdl_import_routes,
    mdl_upload_routes,   mdl_job_routes,          mdl_category_routes,   mdl_pack_routes,
    mdl_link_routes,     mdl_mapping_routes,      mdl_order_routes,      mdl_order_history_routes,
    mdl_evidence_routes, mdl_order_assign_routes, mdl_assignment_routes, mdl_order_action_routes,
    mdl_email_routes,    mdl_license_key_routes,  mdl_search_routes,     mdl_statistics_routes,
    mdl_event_routes,    mdl_webhook_routes,      mdl_customer_routes,   mdl_shop_routes,
    mdl_move_routes,     mdl_audit_routes,        mdl_help_routes,       NULL,
};

/* Splits r->uri behind the API's root, wherever that is mounted. */
static int router_split_path(mdl_request_t *request)
{
    const char *at = strstr(request->r->uri, MDL_API_ROOT);

    if (at == NULL) {
        return 0;
    }
    at += strlen(MDL_API_ROOT);
    request->root = apr_pstrmemdup(request->r->pool, request->r->uri,
                                   (apr_size_t)(at - request->r->uri));
    request->path = at;
    return 1;
}

/* The routes that match a path. */
typedef struct {
    int number; /* of the route that is looked at, and of request->route */
    int found;
    int variables;     /* variable segments of the routes noted */
    const char *allow; /* their methods; NULL when no route matches */
} route_path_t;

/* Notes a route if it matches the path.  A literal segment outranks a variable one:
   "/assets/uploads" is not an asset. */
static void route_consider(mdl_request_t *request, const mdl_route_t *route, route_path_t *path)
{
    const char *method = request->r->method_number == M_GET ? "GET" : request->r->method;
    const char *parameters[MDL_PATH_PARAMETERS];
    int n = mdl_path_match(route->path, request->path, parameters, request->r->pool);

    if (n < 0 || (path->allow != NULL && n > path->variables)) {
        return;
    }
    if (path->allow != NULL && n < path->variables) {
        path->allow = NULL;
        request->route = NULL;
    }
    path->variables = n;
    path->allow = apr_pstrcat(request->r->pool, path->allow != NULL ? path->allow : "",
                              path->allow != NULL ? ", " : "", route->method,
                              strcmp(route->method, "GET") == 0 ? ", HEAD" : "", NULL);
    if (strcmp(route->method, method) == 0) {
        memcpy(request->parameters, parameters, sizeof parameters);
        request->entity_id = parameters[0];
        request->route = route;
        path->found = path->number;
    }
}

/* Finds the route of path and method; returns the methods of the path, NULL for an unknown path. */
static const char *route_find(mdl_request_t *request)
{
    route_path_t path = {0};

    for (const mdl_route_t *const *of = resources; *of != NULL; of++) {
        for (const mdl_route_t *route = *of; route->method != NULL; route++) {
            path.number++;
            route_consider(request, route, &path);
        }
    }
    mdl_note_operation(request->r, request->route != NULL ? path.found : 0);
    return path.allow != NULL ? apr_pstrcat(request->r->pool, path.allow, ", OPTIONS", NULL) : NULL;
}

const char *mdl_router_operation(int number, apr_pool_t *p)
{
    for (const mdl_route_t *const *of = resources; *of != NULL; of++) {
        for (const mdl_route_t *route = *of; route->method != NULL; route++) {
            if (--number == 0) {
                return apr_pstrcat(p, route->method, " ", route->path, NULL);
            }
        }
    }
    return NULL;
}

static int router_refuse(mdl_request_t *request, int status, const char *code, const char *message)
{
    mdl_request_body_discard(request->r);
    mdl_problem_set(&request->problem, status, code, message);
    return mdl_response_problem(request);
}

int mdl_router_handle(request_rec *r, const mdl_service_t *service)
{
    mdl_request_t *request = apr_pcalloc(r->pool, sizeof *request);
    const char *allow = NULL;

    request->r = r;
    request->service = service;
    request->request_id = mdl_request_id(r);
    if (!mdl_tls_admits(r, service->settings)) {
        return router_refuse(request, 403, "tls_required", MDL_TLS_REQUIRED);
    }
    if (router_split_path(request)) {
        allow = route_find(request);
    }
    if (allow == NULL) {
        return router_refuse(request, 404, "not_found",
                             "There is no such path in this API; GET /api/v1/docs lists them.");
    }
    if (r->method_number == M_OPTIONS) {
        mdl_request_body_discard(r);
        apr_table_setn(r->headers_out, "Allow", allow);
        request->status = HTTP_NO_CONTENT;
        return mdl_response_send(request, NULL, 0);
    }
    if (request->route == NULL) {
        apr_table_setn(r->headers_out, "Allow", allow);
        return router_refuse(request, 405, "method_not_allowed",
                             "This path does not have that method.");
    }
    return mdl_gate_run(request);
}
