#include "api/router.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "api/assets.h"
#include "api/assignments.h"
#include "api/categories.h"
#include "api/events.h"
#include "api/gate.h"
#include "api/health.h"
#include "api/imports.h"
#include "api/jobs.h"
#include "api/license_keys.h"
#include "api/links.h"
#include "api/mappings.h"
#include "api/openapi.h"
#include "api/order_actions.h"
#include "api/order_assign.h"
#include "api/order_history.h"
#include "api/orders.h"
#include "api/packs.h"
#include "api/response.h"
#include "api/uploads.h"
#include "api/webhooks.h"
#include "request_body.h"
#include "tls.h"

static const mdl_route_t *const routes[] = {
    &mdl_route_openapi,
    &mdl_route_docs,
    &mdl_route_health,
    &mdl_route_health_ready,
    &mdl_route_ping,
    &mdl_route_asset_list,
    &mdl_route_asset_import,
    &mdl_route_asset,
    &mdl_route_asset_change,
    &mdl_route_asset_delete,
    &mdl_route_asset_version,
    &mdl_route_job_list,
    &mdl_route_job,
    &mdl_route_job_cancel,
    &mdl_route_job_retry,
    &mdl_route_category_list,
    &mdl_route_category_create,
    &mdl_route_category,
    &mdl_route_category_change,
    &mdl_route_category_delete,
    &mdl_route_pack_list,
    &mdl_route_pack_create,
    &mdl_route_pack,
    &mdl_route_pack_change,
    &mdl_route_pack_delete,
    &mdl_route_link_list,
    &mdl_route_link_create,
    &mdl_route_link,
    &mdl_route_link_change,
    &mdl_route_link_delete,
    &mdl_route_mapping_list,
    &mdl_route_mapping_put,
    &mdl_route_mapping,
    &mdl_route_mapping_replace,
    &mdl_route_mapping_change,
    &mdl_route_mapping_delete,
    &mdl_route_order_list,
    &mdl_route_order,
    &mdl_route_order_diagnosis,
    &mdl_route_order_events,
    &mdl_route_order_downloads,
    &mdl_route_order_emails,
    &mdl_route_order_assign,
    &mdl_route_assignment_list,
    &mdl_route_assignment,
    &mdl_route_assignment_change,
    &mdl_route_download_urls,
    &mdl_route_order_revoke,
    &mdl_route_order_restore,
    &mdl_route_order_grant,
    &mdl_route_order_resend,
    &mdl_route_order_rotate_link,
    &mdl_route_order_approve,
    &mdl_route_order_reject,
    &mdl_route_license_tags,
    &mdl_route_license_tag_create,
    &mdl_route_license_tag,
    &mdl_route_license_tag_change,
    &mdl_route_license_tag_delete,
    &mdl_route_license_keys,
    &mdl_route_license_keys_add,
    &mdl_route_license_key_delete,
    &mdl_route_upload_begin,
    &mdl_route_upload,
    &mdl_route_upload_abort,
    &mdl_route_upload_complete,
    &mdl_route_event_list,
    &mdl_route_webhook_list,
    &mdl_route_webhook_create,
    &mdl_route_webhook,
    &mdl_route_webhook_change,
    &mdl_route_webhook_delete,
    &mdl_route_webhook_rotate,
    &mdl_route_webhook_test,
    &mdl_route_webhook_deliveries,
    &mdl_route_webhook_resend,
};
#define ROUTES (sizeof routes / sizeof *routes)

/* The number of variable segments in a path of a route's form; parameters gets them.  -1 when the
   path does not have that form. */
static int route_match(const char *form, const char *path, const char **parameters, apr_pool_t *p)
{
    int n = 0;

    while (*form != '\0') {
        if (form[0] == '{') {
            apr_size_t length = strcspn(path, "/");

            if (length == 0 || n == MDL_MAX_PARAMETERS) {
                return -1;
            }
            parameters[n++] = apr_pstrmemdup(p, path, length);
            path += length;
            form += 2;
        } else if (*form++ != *path++) {
            return -1;
        }
    }
    return *path == '\0' ? n : -1;
}

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

/* Finds the route of path and method; *allow gets the methods that the path has.  A literal
   segment outranks a variable one: "/assets/uploads" is no asset. */
static const mdl_route_t *route_find(mdl_request_t *request, const char **allow)
{
    const char *method = request->r->method_number == M_GET ? "GET" : request->r->method;
    const mdl_route_t *found = NULL;
    int fewest = MDL_MAX_PARAMETERS;

    *allow = NULL;
    for (apr_size_t i = 0; i < ROUTES; i++) {
        const char *parameters[MDL_MAX_PARAMETERS] = {NULL};
        int n = route_match(routes[i]->path, request->path, parameters, request->r->pool);

        if (n < 0 || n > fewest) {
            continue;
        }
        if (n < fewest) {
            *allow = NULL;
            found = NULL;
            fewest = n;
        }
        *allow = *allow == NULL
                     ? routes[i]->method
                     : apr_pstrcat(request->r->pool, *allow, ", ", routes[i]->method, NULL);
        if (strcmp(routes[i]->method, "GET") == 0) {
            *allow = apr_pstrcat(request->r->pool, *allow, ", HEAD", NULL);
        }
        if (strcmp(routes[i]->method, method) == 0) {
            memcpy(request->parameters, parameters, sizeof parameters);
            found = routes[i];
        }
    }
    if (*allow != NULL) {
        *allow = apr_pstrcat(request->r->pool, *allow, ", OPTIONS", NULL);
    }
    return found;
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
        request->route = route_find(request, &allow);
    }
    if (allow == NULL) {
        return router_refuse(request, 404, "not_found", "There is no such path in this API.");
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
