/*
 * Ended tasks are written down: what became of the job, and what that means for its asset, email or
 * order.
 */
#ifndef MDL_WORKER_SETTLE_H
#define MDL_WORKER_SETTLE_H

#include "worker/worker.h"

/**
 * Settles all ended tasks, those that may in one transaction, which costs one fsync for many small
 * jobs.  A task whose lease is lost leaves nothing but the bytes that it has stored.  What the
 * database can't take now stays for the next turn, and what needs a row that somebody else has
 * locked, or what the database refuses, is tried again each second: that keeps no other task from
 * being settled.  After five refusals the job has failed.
 */
void mdl_settle_ended(mdl_worker_t *worker);

#endif
