/*
 * The handler of the metrics, for Prometheus to scrape.
 */
#ifndef MDL_MONITOR_SCRAPE_H
#define MDL_MONITOR_SCRAPE_H

#include <httpd.h>

#include "core/service/service.h"

#define MDL_METRICS_HANDLER "downloads-metrics"

/** Answers with all metrics of this node; what the database has to be asked for is at most a few
    seconds old.  403 if the handler was set outside of httpd's configuration, where the check of
    "Require" (config.c) did not see it. */
int mdl_scrape_handle(request_rec *r, const mdl_service_t *service);

/** Measures the gauges, unless somebody did within the last seconds. */
void mdl_scrape_measure(request_rec *r, const mdl_service_t *service);

#endif
