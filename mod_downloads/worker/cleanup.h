/*
 * Cleaning up after cancelled jobs: stops their tasks, and removes their files once no worker has
 * them.  The job's row records that this is pending, so a dead worker's successor does it.
 */
#ifndef MDL_WORKER_CLEANUP_H
#define MDL_WORKER_CLEANUP_H

#include "worker/worker.h"

/** Cleans up after a batch of cancelled jobs; sets worker->look_cancelled if there are more.  What
    fails is retried at the next poll; a job with a running task waits for the task to end. */
void mdl_cleanup_cancelled(mdl_worker_t *worker);

#endif
