/*
 * Numbers events (core/shop/event.h) soon after they were committed, and queues them for the shops'
 * webhook endpoints.
 */
#ifndef MDL_WORKER_PUBLISH_H
#define MDL_WORKER_PUBLISH_H

#include "worker/worker.h"

/** Looks for events without a number, such as those of dead processes. */
void mdl_publish_look(mdl_worker_t *worker);

/** When mdl_publish_events is due, by mdl_clock_monotonic; APR_INT64_MAX: no event is waiting. */
apr_time_t mdl_publish_due(const mdl_worker_t *worker);

/** Numbers a batch of events. */
void mdl_publish_events(mdl_worker_t *worker);

#endif
