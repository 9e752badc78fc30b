/*
 * Cleaning up after cancelled jobs: their tasks are stopped, and what they left behind is removed
 * once no worker has them any more.  The job's row records that this is pending, so that if a
 * worker dies, its successor does it.
 */
#ifndef MDL_WORKER_CLEANUP_H
#define MDL_WORKER_CLEANUP_H

#include "worker/worker.h"

/** Cleans up after a batch of cancelled jobs; sets worker->look_cancelled if there are more.  What
    can't be done now is left to the next poll, or to the end of the stopped task. */
void mdl_cleanup_cancelled(mdl_worker_t *worker);

#endif
