/*
 * The table of the lanes of jobs, which queue.mustache shows.
 */
#ifndef MDL_SETTINGS_QUEUE_H
#define MDL_SETTINGS_QUEUE_H

#include "base/text/json.h"
#include "core/job_queue.h"

/** Adds the member queue: an entry for each lane, also for those without a job if idle is true; and
    has_queue, whether there is any. */
void mdl_queue_add(mdl_json_t *to, const mdl_queue_t *queue, int idle);

#endif
