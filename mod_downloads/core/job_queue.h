/*
 * How much waits for background processes in each lane, for people.
 */
#ifndef MDL_CORE_JOB_QUEUE_H
#define MDL_CORE_JOB_QUEUE_H

#include "core/job.h"

#define MDL_QUEUE_MAX 1000 /* jobs are counted up to one more */

typedef struct {
    apr_int64_t waiting; /* due now, up to MDL_QUEUE_MAX + 1 */
    apr_int64_t later;   /* due later, such as emails to be tried again, likewise */
    apr_int64_t running;
    apr_time_t oldest; /* when the oldest that waits was due; 0: none waits */
} mdl_queue_lane_t;

/** Effect: reads the lanes of a shop or, with shop_id 0, of all shops that are not blocked. */
typedef struct {
    apr_int64_t shop_id;
    mdl_queue_lane_t lanes[MDL_LANES]; /* out: by mdl_job_lane_t */
} mdl_queue_t;
apr_status_t mdl_queue_read(mdl_db_t *db, apr_pool_t *p, mdl_queue_t *queue);

#endif
