/*
 * A handler is what the worker does with one type of job.  A new one is a file job_….c with its
 * record, the record's declaration below, and its line in the table of handler.c
 * (docs/extend.md, "Add a kind of job").
 */
#ifndef MDL_WORKER_HANDLER_H
#define MDL_WORKER_HANDLER_H

#include "worker/task.h"

struct mdl_job_handler_t {
    /** In the control thread, before prepare: an effect that reads into p what the work of tasks
        (mdl_task_t *) needs that were claimed together, by as many statements as one of them takes.
        An error is the result of prepare.  May be NULL. */
    apr_status_t (*read)(mdl_db_t *db, apr_pool_t *p, const apr_array_header_t *tasks);
    /** In the control thread, before the lane: reads what the work needs.  An error of the database
        releases the job; a task that needs no work gets its outcome and APR_EOF.  May be NULL. */
    apr_status_t (*prepare)(mdl_db_t *db, mdl_task_t *task);
    /** In the lane's thread: begins the work, and ends it by mdl_runner_done now or later. */
    void (*start)(mdl_task_t *task);
    /** In the lane's thread: ends the tasks (mdl_task_t *) that called mdl_runner_arrived in one
       turn of the transfers; p lives as long as the call.  May be NULL. */
    void (*finish)(const apr_array_header_t *tasks, apr_pool_t *p);
    /** In the lane's thread: breaks off work that was begun.  The caller calls mdl_runner_done
        afterwards.  NULL if start does not return before the work is done. */
    void (*stop)(mdl_task_t *task);
    /** Whether the job is settled in a transaction of its own: if settle locks rows that must not
       be locked together with those of another job. */
    int alone;
    /** In the control thread, inside the transaction that ends the job or puts it back: what else
        the outcome means. */
    apr_status_t (*settle)(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p);
    /** In the control thread: removes what a cancelled job may have left, once nobody works on it
        any more.  May be NULL. */
    apr_status_t (*clean)(mdl_storage_t *storage, const mdl_job_t *job, apr_pool_t *p);
};

extern const mdl_job_handler_t mdl_handler_import;
extern const mdl_job_handler_t mdl_handler_verify;
extern const mdl_job_handler_t mdl_handler_mail;
extern const mdl_job_handler_t mdl_handler_lookup;
extern const mdl_job_handler_t mdl_handler_webhook;
extern const mdl_job_handler_t mdl_handler_staff_email;

/** The handler of a job; NULL for a type that this release does not know. */
const mdl_job_handler_t *mdl_handler_of(const mdl_job_t *job);

#endif
