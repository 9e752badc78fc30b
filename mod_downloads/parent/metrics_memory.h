/*
 * The memory of the metrics (core/metrics.h), which outlives restarts of httpd: counters go on, and
 * children that still end their requests count in the same memory as their successors.
 */
#ifndef MDL_PARENT_METRICS_MEMORY_H
#define MDL_PARENT_METRICS_MEMORY_H

#include <apr_errno.h>

/** Makes the memory or finds it again, and lets mdl_metrics point to it; in httpd's parent, before
    it forks.  operations tells builds apart, together with their names: another build begins with
    new memory, because its metrics may be others. */
apr_status_t mdl_metrics_memory_open(int operations);

#endif
