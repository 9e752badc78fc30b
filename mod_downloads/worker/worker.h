/*
 * The control thread's state: its connection, the lanes, the tasks.  loop.c runs the turns;
 * claim.c, settle.c, cleanup.c and maintenance.c do the work.
 */
#ifndef MDL_WORKER_WORKER_H
#define MDL_WORKER_WORKER_H

#include "db/reconnect.h"
#include "worker/lane.h"

typedef struct {
    const mdl_service_t *service;
    mdl_storage_t *storage;
    mdl_template_cache_t *templates;
    const char *owner;          /* the name in leases of this process and its predecessors */
    const char *boot_id;        /* of the running kernel */
    apr_pool_t *turn;           /* cleared after each turn of the loop */
    apr_allocator_t *allocator; /* of the tasks' pools, which move between threads */
    mdl_reconnect_t *database;
    mdl_beats_t *leases; /* of all nodes' jobs */
    mdl_lane_t lanes[MDL_LANES];
    int nodes;                  /* that share what the service may send; 0 before the first beat */
    mdl_job_look_t jobs;        /* when each lane's next job is due, as far as known */
    int look;                   /* whether other processes may have queued jobs */
    int events;                 /* whether events may need a number */
    apr_int64_t events_from;    /* the id from which events are searched */
    apr_time_t events_at;       /* when to number them, by mdl_clock_monotonic */
    int look_cancelled;         /* whether there may be cancelled jobs to clean up after */
    mdl_queue_t *done;          /* tasks returned by the lanes */
    mdl_task_t *tasks;          /* all tasks, in any place (task->place), linked by peer */
    apr_time_t postponed_until; /* when to retry postponed tasks, by mdl_clock_monotonic */
} mdl_worker_t;

/** Opens the storage and starts the lanes' threads.  An error has been logged. */
apr_status_t mdl_worker_create(mdl_worker_t **worker, const mdl_service_t *service,
                               const char *owner, apr_pool_t *p);

/** Runs an effect by mdl_reconnect_write, or by mdl_reconnect_settle. */
apr_status_t mdl_worker_write(mdl_worker_t *worker, mdl_effect_fn *effect, void *arg);
apr_status_t mdl_worker_settle(mdl_worker_t *worker, mdl_effect_fn *effect, void *arg);

/** Resets all marks, so that this turn searches all jobs. */
void mdl_worker_look_anew(mdl_worker_t *worker);

/** Notes that a lane has a job due at a time. */
void mdl_worker_note_due(mdl_worker_t *worker, mdl_job_lane_t lane, apr_time_t due_at);

/** The number of a lane's slots: one, if its jobs store files and the object store is away. */
int mdl_worker_slots(const mdl_worker_t *worker, mdl_job_lane_t lane);

/** The number of a lane's used slots: those of its tasks that are not settled. */
int mdl_worker_busy(const mdl_worker_t *worker, mdl_job_lane_t lane);

/** Takes this node's share of DownloadsMailConnections and DownloadsMailRate among the live nodes,
    0 while they are unknown: no email is claimed then. */
void mdl_worker_share(mdl_worker_t *worker, int nodes);

/** The lane's runner with the fewest tasks. */
mdl_runner_t *mdl_worker_runner(const mdl_worker_t *worker, mdl_job_lane_t lane);

/** When a lane has a due job and a free slot, by mdl_clock_monotonic; APR_INT64_MAX if unknown. */
apr_time_t mdl_worker_claims_at(const mdl_worker_t *worker, mdl_job_lane_t lane);

/** Takes back tasks that ended in their lanes. */
void mdl_worker_take_back(mdl_worker_t *worker);

/** Checks that the lanes' threads still have their tasks.  A task that a thread lost would keep its
    slot and its job's lease for ever: it is logged and forgotten, and the job is done again once
    its lease has expired. */
void mdl_worker_compare(mdl_worker_t *worker);

/** Gives a task its outcome, for mdl_settle_ended. */
void mdl_worker_end(mdl_task_t *task, mdl_outcome_t outcome);

/** Destroys a task that is in no lane. */
void mdl_worker_forget(mdl_worker_t *worker, mdl_task_t *task);

/** Stops the task of a job in its lane; false if there is none. */
int mdl_worker_break_off(mdl_worker_t *worker, const char *job_id);

#endif
