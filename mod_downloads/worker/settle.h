/*
 * Settling ended tasks: writes the outcome of the job, and its effect on the asset, email or order.
 */
#ifndef MDL_WORKER_SETTLE_H
#define MDL_WORKER_SETTLE_H

#include "worker/worker.h"

/**
 * Settles all ended tasks, in one transaction unless handler->alone, so that many small jobs cost
 * one fsync.  Of a task whose lease is lost, only stored bytes remain.  While the database is
 * unavailable, tasks wait for the next turn.  A task that needs a locked row or that the database
 * refuses is retried each second and delays no other; after five refusals its job fails.
 */
void mdl_settle_ended(mdl_worker_t *worker);

#endif
