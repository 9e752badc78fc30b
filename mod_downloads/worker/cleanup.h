/*
 * Cancelled jobs: their tasks are broken off, and what a job may have left goes once nobody works
 * on it any more.  The job's row says that this is still to be done, so that the successor of a
 * worker that died does it, too.
 */
#ifndef MDL_WORKER_CLEANUP_H
#define MDL_WORKER_CLEANUP_H

#include "worker/worker.h"

/** Does so for a batch; worker->look_cancelled says whether there are more.  What can't be done now
    is left to the next poll, or to the end of the task that was broken off. */
void mdl_cleanup_cancelled(mdl_worker_t *worker);

#endif
