/*
 * What has become of a job, written down.
 */
#ifndef MDL_WORKER_OUTCOME_H
#define MDL_WORKER_OUTCOME_H

#include "worker/task.h"

/** Takes the progress that the lane's thread has noted over into task->job. */
void mdl_outcome_progress(mdl_task_t *task);

/**
 * Effect: writes down the outcomes of all tasks of a list (mdl_task_t *, linked by next), which
 * costs one fsync for many small jobs.  A job whose lease is lost is passed over.
 */
apr_status_t mdl_outcome_write(mdl_db_t *db, apr_pool_t *p, void *arg);

#endif
