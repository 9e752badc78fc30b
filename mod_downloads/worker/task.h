/*
 * A claimed job on its way through the background process: the control thread makes a task and
 * hands it to a thread of the job's lane, which does the work and hands it back with an outcome for
 * the control thread to write down.  Only the control thread talks to the database.
 */
#ifndef MDL_WORKER_TASK_H
#define MDL_WORKER_TASK_H

#include <stdatomic.h>

#include <apr_pools.h>

#include "base/text/template_cache.h"
#include "core/job.h"
#include "core/service/service.h"
#include "storage/storage.h"

typedef struct mdl_task_t mdl_task_t;
typedef struct mdl_runner_t mdl_runner_t;
typedef struct mdl_job_handler_t mdl_job_handler_t;

typedef enum {
    MDL_TASK_SUCCEEDED,
    MDL_TASK_RETRY,    /* with job->error_code and error_message, while attempts are left */
    MDL_TASK_FAILED,   /* likewise, for good */
    MDL_TASK_RELEASED, /* unfinished: back to the queue, in job->lane, not before job->due_at */
    MDL_TASK_ABANDONED /* the lease is lost, or the job cancelled: nothing is written */
} mdl_outcome_t;

typedef enum {
    MDL_TASK_CLAIMED,  /* being prepared by the control thread */
    MDL_TASK_IN_LANE,  /* handed to a thread of its lane */
    MDL_TASK_ENDED,    /* back, with an outcome that is not written down yet */
    MDL_TASK_POSTPONED /* the same, but not before the next try: a row is locked, or the database
                          has refused the outcome */
} mdl_task_place_t;

struct mdl_task_t {
    apr_pool_t *pool; /* of the task alone, with its own allocator */
    mdl_job_t *job;
    const mdl_job_handler_t *handler;
    const mdl_service_t *service;
    mdl_storage_t *storage;
    mdl_template_cache_t *templates; /* of the control thread */
    const char *boot_id;             /* of this machine's running kernel */
    void *data;                      /* the handler's own */
    const mdl_blob_t *stored;        /* what the lane's thread has put into storage, or NULL */
    mdl_rows_t *asked; /* of mdl_asset_ask, if the asset is to get what is stored; or NULL */
    mdl_rows_t *kept;  /* of mdl_blob_store, if the asset has got it; or NULL */
    apr_interval_time_t retry_after; /* before the next attempt; 0: the usual back-off */
    apr_interval_time_t least_wait;  /* what that back-off is at least; 0: any */
    mdl_outcome_t outcome;

    /* Written by the lane's thread, read by the control thread. */
    mdl_begun_job_t *mark; /* has the bytes received */
    atomic_llong total;    /* -1: not known */
    atomic_uint pass;      /* the last one of its runner in which that has had it */
    _Atomic(const char *) validator;

    /* Written by the control thread, read by the lane's. */
    atomic_int lost;           /* the lease, or the job */
    atomic_int blocked;        /* the shop: the job is to be given back */
    atomic_llong leased_until; /* by mdl_clock_monotonic */

    /* Of the control thread. */
    mdl_task_t *peer;    /* the next of all tasks */
    mdl_job_lane_t lane; /* that it was claimed from */
    mdl_task_place_t place;
    apr_time_t postponed_at; /* by mdl_clock_monotonic */
    apr_status_t renewal;    /* of the last attempt */
    apr_int64_t reported;    /* bytes, as last written down */
    int refusals;            /* how often the database did not take the outcome */
    unsigned passes;         /* of its runner, when that was last asked for the task */
    mdl_runner_t *runner;
    mdl_task_t *next; /* in the queue that the task is in, or of those settled with it */
};

/** Whether a task must do nothing more that others see, such as send an email: its job is to be
   given back, or may be another worker's.  For the lane's thread. */
int mdl_task_withdrawn(const mdl_task_t *task);

/** Takes the progress that the lane's thread has noted over into task->job: any sets its count of
    interruptions back. */
void mdl_task_progress(mdl_task_t *task);

/** What a handler does with the task from now on: whether the end of the process may be its fault.
 */
void mdl_task_begun(mdl_task_t *task, mdl_begun_state_t state);

#define MDL_QUOTA_CODE    "storage_quota_exceeded"
#define MDL_QUOTA_MESSAGE "The file is larger than what is left of the shop's storage quota."

/** What a source said about its file. */
typedef struct {
    const char *content_type; /* or NULL */
    const char *filename;     /* or NULL */
    const char *host;         /* its name; NULL: there was no source */
} mdl_task_origin_t;

/** For a handler's settle: makes the task's asset ready with the bytes that it has stored.  If the
    quota does not allow that, or the bytes are a page of HTML that nobody asked for, the job has
    failed instead; an asset that was deleted meanwhile gets nothing. */
apr_status_t mdl_task_asset_ready(mdl_db_t *db, mdl_task_t *task, const mdl_task_origin_t *origin,
                                  apr_pool_t *p);

/** For a handler's settle: the job has failed for good, and its asset with it. */
apr_status_t mdl_task_asset_failed(mdl_db_t *db, const mdl_task_t *task, apr_pool_t *p);

#endif
