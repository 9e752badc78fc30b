/*
 * SetHandler downloads-api: finds the operation of a path and a method.
 */
#ifndef MDL_API_ROUTER_H
#define MDL_API_ROUTER_H

#include <httpd.h>

#include "core/service/service.h"

#define MDL_API_HANDLER "downloads-api"
#define MDL_API_ROOT    "/api/v1"

/** Answers one request of the API. */
int mdl_router_handle(request_rec *r, const mdl_service_t *service);

/** The name of an operation by its number (request_notes.h): "GET /jobs/{}".  NULL after the last.
 */
const char *mdl_router_operation(int number, apr_pool_t *p);

#endif
