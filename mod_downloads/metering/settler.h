/*
 * The settler: a thread in each httpd child that has sent or received files, with its own database
 * connection.  It records the progress of running transfers, settles ended transfers, and sends the
 * heartbeat of this process's meter.  Each second it cuts the transfers of customers who have lost
 * access.
 */
#ifndef MDL_METERING_SETTLER_H
#define MDL_METERING_SETTLER_H

#include <apr_pools.h>
#include <apr_time.h>

#include "core/service/service.h"

/** Call it in each httpd child before its threads start.  When p is destroyed, the thread gets a
    few seconds to record what is known. */
void mdl_settler_init(apr_pool_t *p, const mdl_service_t *service);

/** Starts the thread unless it runs; call it before a transfer begins.  False, with a log line, if
    it can't be started: then no transfer may begin. */
int mdl_settler_start(void);

/** Makes the thread watch for blocked shops (takedown.h), until mdl_takedown_unwatch. */
void mdl_settler_watch(void);

/** At the end of the process: cuts all transfers and records what is known. */
void mdl_settler_stop(void);

/** The id of this process's meter. */
const char *mdl_settler_meter_id(void);

/** The time to which a transfer that begins now must extend the heartbeat, by mdl_clock_monotonic;
    0: it need not. */
apr_time_t mdl_settler_due(apr_time_t now);

/** Notes that the heartbeat was extended to this time. */
void mdl_settler_renewed(apr_time_t until);

#endif
