/*
 * Cancelled jobs: what one may have left goes once nobody works on it any more.  Its row says that
 * this is still to be done, so that it is done also by the successor of a worker that died.
 */
#ifndef MDL_WORKER_CLEANUP_H
#define MDL_WORKER_CLEANUP_H

#include "worker/task.h"

#define MDL_CLEANUP_BATCH 50

typedef struct {
    const char *owner;
    apr_time_t overdue; /* another owner's job that has waited since before is ours too */
    mdl_storage_t *storage;
    apr_array_header_t *jobs; /* of mdl_job_t * */
} mdl_cleanup_t;

/** Effect that reads: finds the jobs to clean up after, at most a batch, into jobs. */
apr_status_t mdl_cleanup_find(mdl_db_t *db, apr_pool_t *p, mdl_cleanup_t *cleanup);

/** Effect: removes what jobs have left and notes it. */
apr_status_t mdl_cleanup_run(mdl_db_t *db, apr_pool_t *p, const mdl_cleanup_t *cleanup);

#endif
