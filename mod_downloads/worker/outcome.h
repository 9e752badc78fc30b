/*
 * What has become of a job, written down.
 */
#ifndef MDL_WORKER_OUTCOME_H
#define MDL_WORKER_OUTCOME_H

#include "core/catalog/asset.h"
#include "worker/task.h"

#define MDL_QUOTA_CODE    "storage_quota_exceeded"
#define MDL_QUOTA_MESSAGE "The file is larger than what is left of the shop's storage quota."

/** Takes the progress that the lane's thread has noted over into task->job. */
void mdl_outcome_progress(mdl_task_t *task);

/**
 * Effect: writes down the outcomes of all tasks of a list (mdl_task_t *, linked by next), which
 * costs one fsync for many small jobs.  A job whose lease is lost is passed over, but for what it
 * has stored.
 */
apr_status_t mdl_outcome_write(mdl_db_t *db, apr_pool_t *p, mdl_task_t *first);

/** For settle: makes the task's asset ready with what it has stored.  Where the quota does not
   allow it the job has failed instead; an asset that was deleted meanwhile gets nothing.
   APR_EINCOMPLETE as mdl_blob_check: the job is to be run again. */
apr_status_t mdl_outcome_ready(mdl_db_t *db, const mdl_task_t *task, const char *content_type,
                               apr_pool_t *p);

#endif
