/*
 * A claimed job on its way through the background process: the control thread makes a task and
 * hands it to a thread of the job's lane, which does the work and hands it back with an outcome for
 * the control thread to write down.  Only the control thread talks to the database.
 */
#ifndef MDL_WORKER_TASK_H
#define MDL_WORKER_TASK_H

#include <stdatomic.h>

#include <apr_pools.h>

#include "core/job.h"
#include "core/service.h"
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

struct mdl_task_t {
    apr_pool_t *pool; /* of the task alone, with its own allocator */
    mdl_job_t *job;
    const mdl_job_handler_t *handler;
    const mdl_service_t *service;
    mdl_storage_t *storage;
    const char *boot_id;             /* of this machine's running kernel */
    void *data;                      /* of the kind */
    const mdl_blob_t *stored;        /* what the lane's thread has put into storage, or NULL */
    apr_interval_time_t retry_after; /* before the next attempt; 0: the usual back-off */
    mdl_outcome_t outcome;

    /* Written by the lane's thread, read by the control thread. */
    atomic_llong received;
    atomic_llong total; /* -1: not known */
    _Atomic(const char *) validator;

    /* Written by the control thread, read by the lane's. */
    atomic_int lost; /* the lease, or the job */
    atomic_llong leased_until;

    /* Of the control thread. */
    mdl_task_t *peer; /* the next of the active ones */
    int lane;
    apr_status_t renewal; /* of the last attempt */
    apr_int64_t reported; /* bytes, as last written down */
    mdl_runner_t *runner;
    mdl_task_t *next; /* in the queue that the task is in */
};

/** What the worker does with one type of job. */
struct mdl_job_handler_t {
    const char *type;
    /** In the control thread, before the lane: reads what the work needs.  An error of the database
        releases the job; a task that needs no work gets its outcome and APR_EOF.  May be NULL. */
    apr_status_t (*prepare)(mdl_db_t *db, mdl_task_t *task);
    /** In the lane's thread: begins the work, and ends it by mdl_runner_done now or later. */
    void (*start)(mdl_task_t *task);
    /** In the lane's thread: breaks off work that was begun; mdl_runner_done has not been called
       and will be by the caller.  NULL where start does not return before the work is done. */
    void (*stop)(mdl_task_t *task);
    /** Whether settle locks what must not be locked together with another job's: then each job is
        written down by itself. */
    int alone;
    /** In the control thread, inside the transaction that ends the job or puts it back: what else
        the outcome means. */
    apr_status_t (*settle)(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p);
    /** In the control thread: removes what a cancelled job may have left that nobody works on any
        more.  May be NULL. */
    apr_status_t (*clean)(mdl_storage_t *storage, const mdl_job_t *job, apr_pool_t *p);
};

extern const mdl_job_handler_t mdl_handler_import;
extern const mdl_job_handler_t mdl_handler_verify;
extern const mdl_job_handler_t mdl_handler_mail;
extern const mdl_job_handler_t mdl_handler_lookup;

/** The kind of a job; NULL for a type that is not known. */
const mdl_job_handler_t *mdl_handler_of(const mdl_job_t *job);

#endif
