/*
 * The thread that tests the service every DownloadsAlertInterval, by a clock that nobody sets, and
 * has its operator told (core/health/alert.h).  It opens its own connection for each round, and no
 * job waits for it.
 */
#ifndef MDL_WORKER_ALERTS_H
#define MDL_WORKER_ALERTS_H

#include "core/service/service.h"

typedef struct mdl_alerts_t mdl_alerts_t;

/** Starts the thread; *alerts is NULL if the settings ask for none. */
apr_status_t mdl_alerts_start(mdl_alerts_t **alerts, const mdl_service_t *service, apr_pool_t *p);

/** Has the thread stop.  alerts may be NULL here and below. */
void mdl_alerts_stop(mdl_alerts_t *alerts);

/** Waits for that, for a quarter of a second: a test may take longer, and the process may end. */
void mdl_alerts_wait(const mdl_alerts_t *alerts);

#endif
