/*
 * The operations of all handlers: their names, and how many requests each had.
 */
#ifndef MDL_MONITOR_OPERATIONS_H
#define MDL_MONITOR_OPERATIONS_H

#include <httpd.h>

#include "core/service/service.h"

/** How many operations there are.  The numbers of a handler's operations follow each other; its
    first one, "other", is of requests that match none. */
int mdl_operations_list(apr_pool_t *p);
int mdl_operations_count(void);

/** The handler of an operation, "api", and its name, "GET /jobs/{}". */
const char *mdl_operation_handler(int number);
const char *mdl_operation_name(int number);

/** Runs the request's handler, and counts the request; DECLINED if the handler has no operations.
 */
int mdl_operation_run(request_rec *r, const mdl_service_t *service);

/** Whether a handler, named as in SetHandler, has operations. */
int mdl_operation_is_ours(const char *handler);

#endif
