#include "delivery/delivery.h"

#include <string.h>

#include <apr_strings.h>
#include <http_config.h>
#include <http_connection.h>
#include <http_log.h>
#include <http_protocol.h>
#include <mpm_common.h>

#include "base/http/path.h"
#include "delivery/confirm.h"
#include "delivery/file.h"
#include "delivery/find.h"
#include "delivery/help_answer.h"
#include "delivery/link.h"
#include "delivery/logo.h"
#include "delivery/output.h"
#include "delivery/page.h"
#include "delivery/unsubscribe.h"
#include "delivery/view.h"
#include "metering/settler.h"
#include "metering/socket_bytes.h"
#include "request_notes.h"
#include "tls.h"

APLOG_USE_MODULE(downloads);

static const char *root; /* path of the public URL, decoded as r->uri is; "" for none */

static int delivery_pre_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    (void)plog;
    (void)ptemp;
    (void)pconf;
    mdl_socket_bytes_register();
    return OK;
}

static void delivery_stop(apr_pool_t *p, int graceful)
{
    (void)p;
    if (!graceful) {
        mdl_settler_stop();
    }
}

void mdl_delivery_register(void)
{
    mdl_output_register();
    ap_hook_pre_config(delivery_pre_config, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_pre_connection(mdl_socket_bytes_begin, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_child_stopping(delivery_stop, NULL, NULL, APR_HOOK_MIDDLE);
}

void mdl_delivery_child_init(apr_pool_t *p, const mdl_service_t *service)
{
    char *path;

    mdl_view_init(p, service->settings);
    mdl_settler_init(p, service);
    path = apr_pstrdup(p, mdl_view_public_path());
    root = ap_unescape_url(path) == OK ? path : mdl_view_public_path();
}

static int delivery_not_found(request_rec *r)
{
    return mdl_view_message(r, HTTP_NOT_FOUND, "page_not_found", NULL);
}

typedef int answer_fn(request_rec *r, const mdl_service_t *service, const char *token);

static const struct {
    const char *path; /* the first "{}" is the token, the second a name for the client to see */
    answer_fn *get;
    answer_fn *post;  /* or NULL */
    answer_fn *other; /* refuses other methods */
} routes[] = {
    {"/o/{}", mdl_page_show, mdl_page_press, mdl_page_wrong_method},
    {"/f/{}", mdl_file_serve, NULL, mdl_file_wrong_method},
    {"/f/{}/{}", mdl_file_serve, NULL, mdl_file_wrong_method},
    {"/z/{}", mdl_file_serve_archive, NULL, mdl_file_wrong_method},
    {"/z/{}/{}", mdl_file_serve_archive, NULL, mdl_file_wrong_method},
    {"/l/{}", mdl_link_serve, NULL, mdl_link_wrong_method},
    {"/logo/{}", mdl_logo_serve, NULL, mdl_logo_wrong_method},
    {"/h/{}", mdl_help_answer_show, mdl_help_answer_press, mdl_help_answer_wrong_method},
    {"/c/{}", mdl_confirm_show, mdl_confirm_press, mdl_confirm_wrong_method},
    {"/u/{}", mdl_unsubscribe_show, mdl_unsubscribe_press, mdl_confirm_wrong_method},
    {"/find/{}", mdl_find_show, mdl_find_press, mdl_find_wrong_method},
};
#define ROUTES (sizeof routes / sizeof *routes)

/* A route has two operations, GET and then POST. */
const char *mdl_delivery_operation(int number, apr_pool_t *p)
{
    apr_size_t i = ((apr_size_t)number - 1) / 2;

    return i < ROUTES ? apr_pstrcat(p, number % 2 == 1 ? "GET " : "POST ", routes[i].path, NULL)
                      : NULL;
}

static int delivery_route(request_rec *r, const mdl_service_t *service, const char *path)
{
    const char *parameters[MDL_PATH_PARAMETERS];
    apr_size_t i = 0;

    while (i < ROUTES && mdl_path_match(routes[i].path, path, parameters, r->pool) < 0) {
        i++;
    }
    if (i == ROUTES) {
        return delivery_not_found(r);
    }
    if (r->method_number == M_GET || r->method_number == M_POST) {
        mdl_note_operation(r, 2 * (int)i + (r->method_number == M_POST ? 2 : 1));
    }
    if (r->method_number == M_GET) {
        return routes[i].get(r, service, parameters[0]);
    }
    if (r->method_number == M_POST && routes[i].post != NULL) {
        return routes[i].post(r, service, parameters[0]);
    }
    apr_table_setn(r->headers_out, "Allow",
                   routes[i].post != NULL ? "GET, HEAD, POST" : "GET, HEAD");
    return routes[i].other(r, service, parameters[0]);
}

int mdl_delivery_handle(request_rec *r, const mdl_service_t *service)
{
    apr_size_t length = strlen(root);

    /* The Referer may hold the page's token, and httpd adds it to each line of its error log. */
    apr_table_unset(r->headers_in, "Referer");
    /* mod_mime has set these by the URL's name, which does not describe what is sent. */
    r->content_languages = NULL;
    r->content_encoding = NULL;
    if (!mdl_tls_admits(r, service->settings)) {
        return mdl_view_message(r, HTTP_FORBIDDEN, "tls_required", NULL);
    }
    if (strncmp(r->uri, root, length) != 0 || (r->uri[length] != '/' && r->uri[length] != '\0')) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                      "MDL0401: the <Location> of the handler " MDL_DELIVERY_HANDLER
                      " and DownloadsPublicURL %s disagree: requests come for a path that is not "
                      "under \"%s/\"",
                      service->settings->public_url, root);
        return delivery_not_found(r);
    }
    return delivery_route(r, service, r->uri + length);
}
