/*
 * The lanes of the background process.  A job waits in one lane (core/job.h); each lane has its own
 * slots and threads, so that small imports never wait for large ones.
 */
#ifndef MDL_WORKER_LANE_H
#define MDL_WORKER_LANE_H

#include "worker/runner.h"

#define MDL_LANE_MAX_RUNNERS MDL_MAX_RUNNERS

typedef struct {
    int slots;              /* tasks at a time */
    int behind;             /* whether the last claim left due jobs */
    apr_int64_t after;      /* the last shop that got a turn */
    apr_int64_t shops_from; /* where the next claim resumes scanning shops */
    apr_int64_t shops_seen; /* shops scanned without finding a job */
    apr_time_t claimed_at;  /* by mdl_clock_monotonic, as held_until */
    apr_time_t held_until;  /* until then, due jobs wait for a slot or a new job */
    int runner_count;
    mdl_runner_t *runners[MDL_LANE_MAX_RUNNERS];
} mdl_lane_t;

/** Starts the threads of all lanes, indexed by mdl_job_lane_t; ended tasks are put into done.
    After an error the lanes must be stopped and joined all the same. */
apr_status_t mdl_lanes_start(mdl_lane_t lanes[MDL_LANES], const mdl_service_t *service,
                             mdl_queue_t *done, apr_pool_t *p);

/** Asks all threads to release their tasks and end; returns at once. */
void mdl_lanes_stop(mdl_lane_t lanes[MDL_LANES]);

/** Waits for the threads to end. */
void mdl_lanes_join(mdl_lane_t lanes[MDL_LANES]);

#endif
