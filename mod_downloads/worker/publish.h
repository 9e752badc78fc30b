/*
 * Numbers what shops' systems are told of (core/shop/event.h), soon after it was committed, and
 * queues it for their webhook endpoints.
 */
#ifndef MDL_WORKER_PUBLISH_H
#define MDL_WORKER_PUBLISH_H

#include "worker/worker.h"

/** Finds out whether others have left events without a number. */
void mdl_publish_look(mdl_worker_t *worker);

/** When mdl_publish_events is due, by mdl_clock_monotonic; APR_INT64_MAX: there is nothing to
   number. */
apr_time_t mdl_publish_due(const mdl_worker_t *worker);

/** Numbers a batch of events. */
void mdl_publish_events(mdl_worker_t *worker);

#endif
