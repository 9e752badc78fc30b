/*
 * The settler: a thread in each httpd child that has sent or received files, with its own database
 * connection.  It records the progress of running transfers, settles ended transfers, and sends the
 * heartbeat of this process's meter, also for uploads into objects.  Each second it cuts the
 * transfers of customers who have lost access.
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

/** Makes the thread watch for blocked shops (takedown.h) until mdl_settler_unwatch, and, with
   beats, go on with the heartbeat. */
void mdl_settler_watch(int beats);
void mdl_settler_unwatch(int beats);

/** Sends the heartbeat unless that was done a moment ago, through run, which runs an effect. */
apr_status_t mdl_settler_beat(apr_status_t (*run)(void *baton, mdl_db_run_fn *how,
                                                  mdl_effect_fn *effect, void *arg),
                              void *baton);

/** As mdl_owed_add. */
void mdl_settler_owe(mdl_effect_fn *effect, void *arg, apr_pool_t *pool);

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
