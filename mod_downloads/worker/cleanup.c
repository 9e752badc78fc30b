#include "worker/cleanup.h"

#include "base/log.h"

apr_status_t mdl_cleanup_find(mdl_db_t *db, apr_pool_t *p, mdl_cleanup_t *cleanup)
{
    return mdl_job_to_clean(db, cleanup->owner, cleanup->overdue, MDL_CLEANUP_BATCH, &cleanup->jobs,
                            p);
}

/* The row comes first and stays locked while the file goes: a retry, which would begin the file
   anew, waits until it is gone. */
static apr_status_t cleanup_clean(mdl_db_t *db, const mdl_cleanup_t *cleanup, const mdl_job_t *job,
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
    return rv;
}

apr_status_t mdl_cleanup_run(mdl_db_t *db, apr_pool_t *p, const mdl_cleanup_t *cleanup)
{
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < cleanup->jobs->nelts && rv == APR_SUCCESS; i++) {
        rv = cleanup_clean(db, cleanup, APR_ARRAY_IDX(cleanup->jobs, i, mdl_job_t *), p);
    }
    return rv;
}
