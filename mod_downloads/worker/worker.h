/*
 * What the control thread has: its connection, the lanes, the tasks under way.  loop.c goes round;
 * claim.c, settle.c, cleanup.c and maintenance.c do the work of a turn.
 */
#ifndef MDL_WORKER_WORKER_H
#define MDL_WORKER_WORKER_H

#include "db/reconnect.h"
#include "worker/lane.h"

typedef struct {
    const mdl_service_t *service;
    mdl_storage_t *storage;
    mdl_template_cache_t *templates;
    const char
        *owner; /* this process and its predecessors, by which leases are told from others' */
    const char *boot_id;        /* of this machine's running kernel */
    apr_pool_t *turn;           /* cleared after each turn of the loop */
    apr_allocator_t *allocator; /* of the tasks' pools, which go from thread to thread */
    mdl_reconnect_t *database;
    mdl_beats_t *leases; /* of all nodes' jobs */
    mdl_lane_t lanes[MDL_LANES];
    mdl_job_look_t jobs;        /* when the next of each lane is due, as far as known */
    int look;                   /* whether others may have queued jobs since */
    int events;                 /* whether there may be some without a number */
    apr_int64_t events_from;    /* where they are looked for */
    apr_time_t events_at;       /* when they are numbered, by mdl_clock_monotonic */
    int look_cancelled;         /* whether there may be cancelled jobs to clean up after */
    mdl_queue_t *done;          /* tasks that come back from the lanes */
    mdl_task_t *tasks;          /* all that exist, wherever they are (task->place); by peer */
    apr_time_t postponed_until; /* none of those is tried before, by mdl_clock_monotonic */
} mdl_worker_t;

/** Opens the storage and starts the lanes' threads.  An error has been logged. */
apr_status_t mdl_worker_create(mdl_worker_t **worker, const mdl_service_t *service,
                               const char *owner, apr_pool_t *p);

/** Runs an effect by mdl_reconnect_write. */
apr_status_t mdl_worker_write(mdl_worker_t *worker, mdl_effect_fn *effect, void *arg);

/** Has all jobs looked for in this turn, wherever they may be. */
void mdl_worker_look_anew(mdl_worker_t *worker);

/** Notes that a job of a lane is due at a time. */
void mdl_worker_note_due(mdl_worker_t *worker, mdl_job_lane_t lane, apr_time_t due_at);

/** How many slots of a lane are in use: those of its tasks, until they are settled. */
int mdl_worker_busy(const mdl_worker_t *worker, mdl_job_lane_t lane);

/** The runner of a lane that has the least to do, the first of several. */
mdl_runner_t *mdl_worker_runner(const mdl_worker_t *worker, mdl_job_lane_t lane);

/** When a lane has a job to claim and a slot for it, by mdl_clock_monotonic; APR_INT64_MAX if that
   is not known yet. */
apr_time_t mdl_worker_claims_at(const mdl_worker_t *worker, mdl_job_lane_t lane);

/** Takes back the tasks that have ended in their lanes. */
void mdl_worker_take_back(mdl_worker_t *worker);

/** Compares the tasks that are to be in the lanes with those that the lanes' threads have.  One
   that a thread has lost would keep its slot, and the lease of its job, for ever: the log says so,
   and the worker forgets it, so that the job is done again once its lease has ended. */
void mdl_worker_compare(mdl_worker_t *worker);

/** Gives a task its outcome, for mdl_settle_ended to write down. */
void mdl_worker_end(mdl_task_t *task, mdl_outcome_t outcome);

/** Removes a task, which is in no lane. */
void mdl_worker_forget(mdl_worker_t *worker, mdl_task_t *task);

/** Has the task of a job broken off in its lane; false if there is none. */
int mdl_worker_break_off(mdl_worker_t *worker, const char *job_id);

#endif
