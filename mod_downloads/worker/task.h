/*
 * A claimed job in the background process: the control thread makes a task and hands it to a thread
 * of the job's lane, which does the work and returns it with an outcome, which the control thread
 * settles.  Only the control thread uses the database.
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
    MDL_TASK_RETRY,    /* with job->error_code and error_message; while attempts are left */
    MDL_TASK_FAILED,   /* likewise, permanently */
    MDL_TASK_RELEASED, /* unfinished: back to the queue, in job->lane, not before job->due_at */
    MDL_TASK_ABANDONED /* the lease is lost, or the job cancelled: nothing is written */
} mdl_outcome_t;

typedef enum {
    MDL_TASK_CLAIMED,  /* being prepared by the control thread */
    MDL_TASK_IN_LANE,  /* handed to a thread of its lane */
    MDL_TASK_ENDED,    /* returned, with an outcome to settle */
    MDL_TASK_POSTPONED /* likewise, at the next try: a row was locked, or the database refused it */
} mdl_task_place_t;

struct mdl_task_t {
    apr_pool_t *pool; /* the task's own */
    mdl_job_t *job;
    const mdl_job_handler_t *handler;
    const mdl_service_t *service;
    mdl_storage_t *storage;
    mdl_template_cache_t *templates; /* of the control thread */
    const char *boot_id;             /* of the running kernel */
    void *data;                      /* the handler's own */
    const mdl_blob_t *stored;        /* the blob that the lane's thread stored, or NULL */
    mdl_rows_t *asked; /* of mdl_asset_ask, if the asset gets the stored blob; else NULL */
    mdl_rows_t *kept;  /* of mdl_blob_store, once the asset has got it; else NULL */
    apr_interval_time_t retry_after; /* before the next attempt; 0: the usual back-off */
    apr_interval_time_t least_wait;  /* the minimum of that back-off; 0: none */
    mdl_outcome_t outcome;

    /* Written by the lane's thread, read by the control thread. */
    mdl_begun_job_t *mark; /* has the bytes received */
    atomic_llong total;    /* -1: not known */
    atomic_uint pass;      /* the runner's last pass that saw the task */
    _Atomic(const char *) validator;
    _Atomic(const char *) written;

    /* Written by the control thread, read by the lane's. */
    atomic_int lost;           /* the lease is lost or the job cancelled */
    atomic_int blocked;        /* the shop is blocked: release the job */
    atomic_llong leased_until; /* by mdl_clock_monotonic */

    /* Of the control thread. */
    mdl_task_t *peer;    /* the next in the list of all tasks */
    mdl_job_lane_t lane; /* from which it was claimed */
    mdl_task_place_t place;
    apr_time_t postponed_at; /* by mdl_clock_monotonic */
    apr_status_t renewal;    /* result of the last renewal */
    apr_int64_t reported;    /* bytes last written to the database */
    int refusals;            /* how often the database refused the outcome */
    unsigned passes;         /* the runner's passes at the last mdl_worker_compare */
    mdl_runner_t *runner;
    mdl_task_t *next; /* in the task's queue, or in the group being settled */
};

/** Whether a task must not act visibly any more, such as send an email: its job must be released,
    or may belong to another worker.  For the lane's thread. */
int mdl_task_withdrawn(const mdl_task_t *task);

/** Copies the lane thread's progress to task->job; any progress resets the job's interruptions. */
void mdl_task_progress(mdl_task_t *task);

/** Sets what the task does now, which tells whether it may be to blame if the process dies. */
void mdl_task_begun(mdl_task_t *task, mdl_begun_state_t state);

#define MDL_QUOTA_CODE    "storage_quota_exceeded"
#define MDL_QUOTA_MESSAGE "The file is larger than what is left of the shop's storage quota."

/** A source's metadata of its file. */
typedef struct {
    const char *content_type; /* or NULL */
    const char *filename;     /* or NULL */
    const char *host;         /* the source's name; NULL: none */
} mdl_task_origin_t;

/** For a handler's settle: makes the task's asset ready with the stored bytes.  If they exceed the
    quota or are an unexpected HTML page, the job fails instead; if the asset was deleted meanwhile,
    nothing happens. */
apr_status_t mdl_task_asset_ready(mdl_db_t *db, mdl_task_t *task, const mdl_task_origin_t *origin,
                                  apr_pool_t *p);

/** For a handler's settle: marks the asset failed after its job failed permanently. */
apr_status_t mdl_task_asset_failed(mdl_db_t *db, const mdl_task_t *task, apr_pool_t *p);

#endif
