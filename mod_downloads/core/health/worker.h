/*
 * Health checks of background processes, by what the database knows (core/node.h).
 */
#ifndef MDL_CORE_HEALTH_WORKER_H
#define MDL_CORE_HEALTH_WORKER_H

#include "core/health/health.h"

/** Whether a process of this host runs; a zombie does not. */
int mdl_health_process_runs(apr_int64_t pid, apr_pool_t *p);

/** Whether this host has a live background process, if DownloadsWorker is on, no other host's is
    silent, and no job waits too long.  If httpd runs, waits up to five seconds for the process,
    which may be restarting. */
mdl_health_fn mdl_health_worker;

/** Whether the live background processes are of this program's build; needs db. */
mdl_health_fn mdl_health_build;

#endif
