/*
 * The metrics of this node (core/metrics.h, monitor/operations.h) as text for Prometheus.
 */
#ifndef MDL_MONITOR_EXPOSITION_H
#define MDL_MONITOR_EXPOSITION_H

#include "base/text/text_buffer.h"

typedef enum {
    MDL_PROMETHEUS_TEXT,
    MDL_OPENMETRICS,
    MDL_STATUS_TEXT, /* a line "name: value" for each sample, as mod_status has with "?auto" */
    MDL_STATUS_HTML  /* rows of a table, for those that are not 0 */
} mdl_exposition_t;

#define MDL_PROMETHEUS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define MDL_OPENMETRICS_TYPE     "application/openmetrics-text; version=1.0.0; charset=utf-8"

/** Writes all metrics in Prometheus's text format 0.0.4, or as OpenMetrics 1.0.  An operation that
    had no request is left out, and so is an absent gauge. */
void mdl_exposition_write(mdl_text_buffer_t *to, mdl_exposition_t format);

/** Writes them for mod_status: requests by class of status alone, and no histogram. */
void mdl_exposition_write_status(mdl_text_buffer_t *to, mdl_exposition_t format);

#endif
