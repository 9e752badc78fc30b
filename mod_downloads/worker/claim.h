/*
 * Claims jobs under a lease, checks them and hands them, as tasks, to a thread of their lane;
 * renews the leases until the tasks are settled.
 */
#ifndef MDL_WORKER_CLAIM_H
#define MDL_WORKER_CLAIM_H

#include "worker/worker.h"

/** Makes a dead predecessor's jobs due at once.  Call it until it succeeds, before the first claim:
    later, this process's own jobs would match. */
apr_status_t mdl_claim_inherit(mdl_worker_t *worker);

/** Finds out which lanes have due jobs, and whether there are cancelled jobs.  Returns 0, or when
    to retry if the database failed. */
apr_time_t mdl_claim_look(mdl_worker_t *worker);

/** Claims as many due jobs of a lane as it has free slots for. */
void mdl_claim_lane(mdl_worker_t *worker, mdl_job_lane_t lane);

/** Stops the tasks of blocked shops and releases their jobs. */
void mdl_claim_give_back_blocked(mdl_worker_t *worker);

/** Renews the leases of unsettled tasks that are due for renewal or have progress to report, and
    stops tasks whose lease is lost. */
void mdl_claim_renew(mdl_worker_t *worker);

/** Takes over jobs whose leases are no longer renewed, except jobs with a task of this worker. */
void mdl_claim_take_over(mdl_worker_t *worker);

#endif
