/*
 * Whether background processes do the work, as far as the database knows (core/node.h).
 */
#ifndef MDL_CORE_HEALTH_WORKER_H
#define MDL_CORE_HEALTH_WORKER_H

#include "core/health/health.h"

/** Whether a process of this host runs; not if it has ended and its parent does not mind. */
int mdl_health_process_runs(apr_int64_t pid, apr_pool_t *p);

/** Whether there is a live background process of this host, where settings and httpd have one, none
    of another that is silent, and no job that waits too long.  Waits up to five seconds for one of
    an httpd that runs: it may just be restarting. */
mdl_health_fn mdl_health_worker;

/** Whether the live ones are of this program's build; db must be there. */
mdl_health_fn mdl_health_build;

#endif
