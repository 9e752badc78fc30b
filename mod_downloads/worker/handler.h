/*
 * A handler implements one type of job.  To add one: a file job_….c with its record, the record's
 * declaration below, and its line in the table in handler.c (docs/extend.md, "Add a kind of job").
 */
#ifndef MDL_WORKER_HANDLER_H
#define MDL_WORKER_HANDLER_H

#include "worker/task.h"

struct mdl_job_handler_t {
    /** Control thread, in the transaction of the claim: writes what the work on a claimed job needs
        the database to know.  May be NULL. */
    apr_status_t (*claimed)(mdl_db_t *db, const mdl_storage_t *storage, mdl_job_t *job,
                            apr_pool_t *p);
    /** Control thread, before prepare: an effect that reads the data for tasks (mdl_task_t *)
        claimed together into p, by as many statements as for one.  An error counts as prepare's.
        May be NULL. */
    apr_status_t (*read)(mdl_db_t *db, apr_pool_t *p, const apr_array_header_t *tasks);
    /** Control thread, before the lane: reads the data for the work.  An error of the database
        releases the job; if no work is needed, it sets the outcome and returns APR_EOF.  May be
        NULL. */
    apr_status_t (*prepare)(mdl_db_t *db, mdl_task_t *task);
    /** Lane's thread: begins the work, which ends by mdl_runner_done, now or later.  NULL if
       prepare always returns APR_EOF. */
    void (*start)(mdl_task_t *task);
    /** Lane's thread: ends the tasks (mdl_task_t *) that called mdl_runner_arrived in one turn of
        the transfers; p is destroyed after the call.  May be NULL. */
    void (*finish)(const apr_array_header_t *tasks, apr_pool_t *p);
    /** Lane's thread: aborts the work; the caller then calls mdl_runner_done.  NULL if start
        returns only when the work is done. */
    void (*stop)(mdl_task_t *task);
    /** Whether each job is settled in its own transaction, because settle locks rows that must not
        be locked together with another job's. */
    int alone;
    /** Control thread, in the transaction that ends or requeues the job: writes all other
        consequences of the outcome.  NULL if there are none. */
    apr_status_t (*settle)(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p);
    /** Control thread: removes a cancelled job's files, once nobody works on it.  May be NULL. */
    apr_status_t (*clean)(mdl_storage_t *storage, const mdl_job_t *job, apr_pool_t *p);
};

extern const mdl_job_handler_t mdl_handler_import;
extern const mdl_job_handler_t mdl_handler_verify;
extern const mdl_job_handler_t mdl_handler_mail;
extern const mdl_job_handler_t mdl_handler_lookup;
extern const mdl_job_handler_t mdl_handler_webhook;
extern const mdl_job_handler_t mdl_handler_staff_email;
extern const mdl_job_handler_t mdl_handler_find_email;
extern const mdl_job_handler_t mdl_handler_logo;
extern const mdl_job_handler_t mdl_handler_move;
extern const mdl_job_handler_t mdl_handler_late;
extern const mdl_job_handler_t mdl_handler_tell;
extern const mdl_job_handler_t mdl_handler_news;
extern const mdl_job_handler_t mdl_handler_merge;

/** The handler of a job; NULL for a type unknown to this release. */
const mdl_job_handler_t *mdl_handler_of(const mdl_job_t *job);

#endif
