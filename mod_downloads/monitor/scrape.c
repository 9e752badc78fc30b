#include "monitor/scrape.h"

#include <string.h>

#include <http_protocol.h>

#include "child_storage.h"
#include "connection.h"
#include "core/health/gauges.h"
#include "core/metrics.h"
#include "monitor/exposition.h"
#include "request_body.h"
#include "tls.h"

MDL_EFFECT(mdl_gauges_read, mdl_gauges_t *)

static void scrape_ask_database(request_rec *r)
{
    mdl_connection_t *connection = NULL;
    mdl_gauges_t gauges;
    apr_status_t rv = mdl_connection_run(&connection, r, mdl_db_read, mdl_gauges_read_effect,
                                         &gauges);

    mdl_connection_close(connection);
    mdl_gauges_set(rv == APR_SUCCESS ? &gauges : NULL);
}

static void scrape_ask_host(const mdl_service_t *service)
{
    const mdl_settings_t *settings = service->settings;
    const mdl_storage_t *storage = mdl_child_storage();
    apr_interval_time_t age = mdl_readiness_beat_age(service->readiness);
    apr_int64_t left;
    int has_folder = storage != NULL && mdl_storage_free(storage, &left) == APR_SUCCESS;

    mdl_metric_set(&mdl_metrics->database_connections_max, settings->db_connections);
    mdl_metric_set(&mdl_metrics->storage_free_bytes, has_folder ? left : MDL_METRIC_ABSENT);
    mdl_metric_set(&mdl_metrics->storage_reserve_bytes,
                   has_folder ? settings->storage.reserve : MDL_METRIC_ABSENT);
    mdl_metric_set(&mdl_metrics->worker_up, settings->worker
                                                ? mdl_readiness_has_worker(service->readiness)
                                                : MDL_METRIC_ABSENT);
    mdl_metric_set(&mdl_metrics->worker_heartbeat_age,
                   settings->worker && age >= 0 ? age : MDL_METRIC_ABSENT);
}

void mdl_scrape_measure(request_rec *r, const mdl_service_t *service)
{
    scrape_ask_host(service);
    if (mdl_metrics_claim()) {
        scrape_ask_database(r);
    }
}

/* Prometheus asks for OpenMetrics first, and other programs that know it name it. */
static mdl_exposition_t scrape_format(request_rec *r)
{
    const char *accept = apr_table_get(r->headers_in, "Accept");

    return accept != NULL && ap_strcasestr(accept, "application/openmetrics-text") != NULL
               ? MDL_OPENMETRICS
               : MDL_PROMETHEUS_TEXT;
}

int mdl_scrape_handle(request_rec *r, const mdl_service_t *service)
{
    mdl_exposition_t format = scrape_format(r);
    mdl_text_buffer_t *page;
    apr_size_t length;
    const char *text;

    mdl_request_body_discard(r);
    /* mod_downloads.c sets it for a <Location> alone, and not for a .htaccess file. */
    if (r->filename == NULL || strcmp(r->filename, MDL_METRICS_HANDLER) != 0 ||
        !mdl_tls_admits(r, service->settings)) {
        return HTTP_FORBIDDEN;
    }
    if (r->method_number != M_GET) {
        apr_table_setn(r->headers_out, "Allow", "GET, HEAD");
        return HTTP_METHOD_NOT_ALLOWED;
    }
    mdl_scrape_measure(r, service);
    page = mdl_text_buffer_make(r->pool);
    mdl_exposition_write(page, format);
    text = mdl_text_buffer_text(page, &length);
    apr_table_unset(r->headers_in, "Range");
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    ap_set_content_type(r, format == MDL_OPENMETRICS ? MDL_OPENMETRICS_TYPE
                                                     : MDL_PROMETHEUS_TEXT_TYPE);
    ap_set_content_length(r, (apr_off_t)length);
    ap_rwrite(text, (int)length, r);
    return OK;
}
