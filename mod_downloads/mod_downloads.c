/*
 * The module record, the hooks and the order in which a server starts.
 */
#include <string.h>

#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mpm_common.h>

#include "api/refusal.h"
#include "base/log.h"
#include "base/version.h"
#include "child_storage.h"
#include "config.h"
#include "connection.h"
#include "core/service/service.h"
#include "db/db.h"
#include "delivery/delivery.h"
#include "log_mask.h"
#include "monitor/operations.h"
#include "monitor/scrape.h"
#include "monitor/status.h"
#include "request_body.h"
#include "settings/router.h"
#include "upload/upload_url.h"
#include "parent/metrics_memory.h"
#include "parent/process.h"
#include "parent/schema.h"

APLOG_USE_MODULE(downloads);

/* Made in post_config, inherited by the children; NULL when the module is not configured. */
static mdl_service_t *service;
static int has_storage; /* whether its storage folder may be used */
static server_rec *main_server;

static void to_error_log(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                         const char *message)
{
    ap_log_error_(file, line, APLOG_MODULE_INDEX, (int)level, rv, main_server, "%s", message);
}

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    const mdl_settings_t *settings = mdl_config(s);
    const char *why;
    int status;

    (void)plog;
    service = NULL;
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG || !settings->configured) {
        return OK;
    }
    main_server = s;
    mdl_log_set_sink(to_error_log);
    mdl_connection_init(settings->db_max);
    if (mdl_service_open(&service, settings, ap_runtime_dir_relative(pconf, ap_pid_fname),
                         mdl_process_wake_fd(), &why, pconf) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_EMERG, 0, s, "MDL0001: %s", why);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (mdl_metrics_memory_open(mdl_operations_list(pconf)) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_EMERG, 0, s,
                     "MDL0001: There is no shared memory for the metrics.");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    service->database_told = mdl_process_database_told();
    if ((status = mdl_schema_prepare(service, s, &has_storage, ptemp)) != OK) {
        return status;
    }
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, s, "MDL0140: mod_downloads %s", mdl_build_name());
    if (settings->worker) {
        mdl_process_start(service, s, pconf);
    }
    return OK;
}

static void child_init(apr_pool_t *p, server_rec *s)
{
    (void)s;
    if (service != NULL) {
        mdl_log_mask_child_init(p, service->settings);
        mdl_request_body_child_init(p);
        if (has_storage) {
            mdl_child_storage_init(p, service->settings);
        }
        mdl_delivery_child_init(p, service);
        mdl_upload_url_child_init(p, service);
        mdl_settings_router_child_init(p, service);
        mdl_status_child_init(service);
    }
}

static int handler_is_metrics(const char *name)
{
    return name != NULL && strcmp(name, MDL_METRICS_HANDLER) == 0;
}

/* What SetHandler says in the <Location> of a URL, or NULL. */
static const char *module_configured_handler(request_rec *r)
{
    const core_dir_config *config = ap_get_core_module_config(r->per_dir_config);
    const char *error = NULL;

    return config->expr_handler != NULL ? ap_expr_str_exec(r, config->expr_handler, &error) : NULL;
}

/* A URL of this module has no file, so httpd need not look for it or for the configuration of its
   folders.  Logs name r->filename, which would hold a customer's token.  Outside of this hook r has
   only the server's configuration. */
static int module_map_to_storage(request_rec *r)
{
    const char *name = ap_location_walk(r) == OK ? module_configured_handler(r) : NULL;

    r->per_dir_config = r->server->lookup_defaults;
    if (!handler_is_metrics(name) && !mdl_operation_is_ours(name)) {
        return DECLINED;
    }
    r->filename = apr_pstrdup(r->pool, name);
    return OK;
}

static int module_handle(request_rec *r)
{
    if (service == NULL) {
        return DECLINED;
    }
    return handler_is_metrics(r->handler) ? mdl_scrape_handle(r, service)
                                          : mdl_operation_run(r, service);
}

static void register_hooks(apr_pool_t *p)
{
    (void)p;
    mdl_db_configure();
    ap_hook_check_config(mdl_config_check, NULL, NULL, APR_HOOK_LAST);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_LAST);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_map_to_storage(module_map_to_storage, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(module_handle, NULL, NULL, APR_HOOK_MIDDLE);
    mdl_refusal_register();
    mdl_log_mask_register();
    mdl_delivery_register();
    mdl_process_register();
    mdl_status_register();
}

/* The one symbol that httpd is to find. */
__attribute__((visibility("default"))) module AP_MODULE_DECLARE_DATA downloads_module = {
    STANDARD20_MODULE_STUFF,
    NULL, /* per-directory configuration: none */
    NULL,
    mdl_config_create_server,
    NULL, /* the directives are global: a virtual host inherits the main server's */
    mdl_config_commands,
    register_hooks,
    AP_MODULE_FLAG_NONE,
};
