#include "worker/cleanup.h"

#include "base/log.h"
#include "worker/handler.h"

#define BATCH 50

typedef struct {
    const char *owner;
    mdl_storage_t *storage;
    apr_array_header_t *jobs; /* mdl_job_t * */
} cleanup_t;

static apr_status_t cleanup_find_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    cleanup_t *cleanup = arg;

    return mdl_job_to_clean(db, cleanup->owner, BATCH, &cleanup->jobs, p);
}

/* Updates the row first, which stays locked while the file is removed: so a retry of the job, which
   would make the file again, waits.  Maintenance retries files that can't be removed; they must not
   block the clean-up of other jobs. */
static apr_status_t job_clean(mdl_db_t *db, const cleanup_t *cleanup, const mdl_job_t *job,
                              apr_pool_t *p)
{
    const mdl_job_handler_t *handler = mdl_handler_of(job);
    apr_status_t rv = mdl_job_cleaned(db, job, p);

    if (rv != APR_SUCCESS || handler == NULL || handler->clean == NULL) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    if ((rv = handler->clean(cleanup->storage, job, p)) != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, rv, "MDL0328: can't remove what the cancelled job %s has left",
                job->id);
    }
    return APR_SUCCESS;
}

static apr_status_t cleanup_run_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const cleanup_t *cleanup = arg;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < cleanup->jobs->nelts && rv == APR_SUCCESS; i++) {
        rv = job_clean(db, cleanup, APR_ARRAY_IDX(cleanup->jobs, i, mdl_job_t *), p);
    }
    return rv;
}

void mdl_cleanup_cancelled(mdl_worker_t *worker)
{
    cleanup_t cleanup = {.owner = worker->owner, .storage = worker->storage};
    int idle = 0, more;

    worker->look_cancelled = 0;
    if (mdl_reconnect_read(worker->database, cleanup_find_effect, &cleanup, worker->turn) !=
        APR_SUCCESS) {
        return;
    }
    more = cleanup.jobs->nelts == BATCH;
    for (int i = 0; i < cleanup.jobs->nelts; i++) {
        mdl_job_t *job = APR_ARRAY_IDX(cleanup.jobs, i, mdl_job_t *);

        if (!mdl_worker_break_off(worker, job->id)) {
            APR_ARRAY_IDX(cleanup.jobs, idle++, mdl_job_t *) = job;
        }
    }
    cleanup.jobs->nelts = idle;
    if (idle > 0 && mdl_worker_write(worker, cleanup_run_effect, &cleanup) == APR_SUCCESS) {
        worker->look_cancelled = more;
    }
}
