/*
 * Jobs become tasks: claimed under a lease, checked, handed to a thread of their lane; and leases
 * are renewed until the tasks are settled.
 */
#ifndef MDL_WORKER_CLAIM_H
#define MDL_WORKER_CLAIM_H

#include "worker/worker.h"

/** Makes the jobs due at once that a predecessor held when it died.  To be called until it has
    succeeded, and before the first claim: then these jobs are our own. */
apr_status_t mdl_claim_inherit(mdl_worker_t *worker);

/** Finds out in which lanes jobs are due, and whether there are cancelled ones.  Returns when to
   try again if the database did not say, else 0. */
apr_time_t mdl_claim_look(mdl_worker_t *worker);

/** Claims as many due jobs of a lane as it has free slots for. */
void mdl_claim_lane(mdl_worker_t *worker, mdl_job_lane_t lane);

/** Has the tasks of blocked shops broken off and their jobs given back. */
void mdl_claim_give_back_blocked(mdl_worker_t *worker);

/** Renews the leases of all tasks that are not settled, where they are due for it or have progress
   to report, and breaks off the tasks whose lease is lost. */
void mdl_claim_renew(mdl_worker_t *worker);

/** Takes the jobs of workers that do not renew their leases any more, and of none that this one
 * has. */
void mdl_claim_take_over(mdl_worker_t *worker);

#endif
