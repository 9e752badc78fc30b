#include "monitor/operations.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_tables.h>
#include <http_protocol.h>

#include "api/router.h"
#include "core/metrics.h"
#include "delivery/delivery.h"
#include "request_notes.h"
#include "settings/router.h"
#include "upload/upload_url.h"

static const struct {
    const char *handler; /* as SetHandler has it */
    const char *name;
    int (*handle)(request_rec *r, const mdl_service_t *service);
    const char *(*operation)(int number, apr_pool_t *p);
} handlers[] = {
    {MDL_API_HANDLER, "api", mdl_router_handle, mdl_router_operation},
    {MDL_DELIVERY_HANDLER, "delivery", mdl_delivery_handle, mdl_delivery_operation},
    {MDL_UPLOAD_HANDLER, "upload", mdl_upload_url_handle, mdl_upload_url_operation},
    {MDL_SETTINGS_HANDLER, "settings", mdl_settings_router_handle, mdl_settings_router_operation}};
#define HANDLERS (sizeof handlers / sizeof *handlers)

typedef struct {
    const char *handler;
    const char *name;
} operation_t;

/* Made in httpd's parent. */
static const apr_array_header_t *operations;
static int firsts[HANDLERS]; /* each handler's operation "other" */

int mdl_operations_list(apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, MDL_OPERATIONS_MAX, sizeof(operation_t));

    for (apr_size_t i = 0; i < HANDLERS; i++) {
        const char *name = "other";

        firsts[i] = list->nelts;
        for (int n = 1; name != NULL && list->nelts < MDL_OPERATIONS_MAX; n++) {
            APR_ARRAY_PUSH(list, operation_t) = (operation_t){handlers[i].name, name};
            name = handlers[i].operation(n, p);
        }
    }
    operations = list;
    return list->nelts;
}

int mdl_operations_count(void)
{
    return operations->nelts;
}

const char *mdl_operation_handler(int number)
{
    return APR_ARRAY_IDX(operations, number, operation_t).handler;
}

const char *mdl_operation_name(int number)
{
    return APR_ARRAY_IDX(operations, number, operation_t).name;
}

static apr_size_t handler_find(const char *handler)
{
    apr_size_t i = 0;

    while (i < HANDLERS && (handler == NULL || strcmp(handler, handlers[i].handler) != 0)) {
        i++;
    }
    return i;
}

int mdl_operation_is_ours(const char *handler)
{
    return handler_find(handler) < HANDLERS;
}

static void operation_count(int number, int status, apr_interval_time_t took)
{
    mdl_operation_count_t *count = &mdl_metrics->operations[number];
    int class = status / 100 - 2;

    class = class < 0 ? 0 : class < MDL_CLASSES ? class : MDL_CLASSES - 1;
    mdl_metric_add(&count->classes[class], 1);
    mdl_histogram_add(&count->took, took);
}

int mdl_operation_run(request_rec *r, const mdl_service_t *service)
{
    apr_size_t i = handler_find(r->handler);
    apr_time_t began;
    int number, status;

    if (i == HANDLERS) {
        return DECLINED;
    }
    began = mdl_metric_clock();
    status = handlers[i].handle(r, service);
    if (!MDL_METRICS) {
        return status;
    }
    number = firsts[i] + mdl_noted_operation(r);
    mdl_note(r, MDL_NOTE_OPERATION, mdl_operation_name(number));
    operation_count(number, status > 0 ? status : r->status, mdl_metric_clock() - began);
    return status;
}
