/*
 * The settler: a thread in each httpd child that has sent or received files, with its own
 * connection to the database.  It writes down what running transfers have delivered so far, settles
 * those that have ended, and beats for this process's meter.  Each second it cuts the transfers of
 * customers who may not have their file any more.
 */
#ifndef MDL_METERING_SETTLER_H
#define MDL_METERING_SETTLER_H

#include <apr_pools.h>
#include <apr_time.h>

#include "core/service/service.h"

/** In each httpd child, before its threads.  When p is destroyed, the thread gets a few seconds to
    write down what is known. */
void mdl_settler_init(apr_pool_t *p, const mdl_service_t *service);

/** Starts the thread unless it runs; before a transfer begins.  False, with a log line, if it can't
    be started: then none may begin. */
int mdl_settler_start(void);

/** Has the thread find out which shops are blocked (takedown.h); mdl_takedown_unwatch ends that. */
void mdl_settler_watch(void);

/** For the end of the process: cuts all transfers and has the rest written down. */
void mdl_settler_stop(void);

/** The id of this process's meter. */
const char *mdl_settler_meter_id(void);

/** The time to which a transfer that begins now must move the beat, by mdl_clock_monotonic; 0
   when it need not. */
apr_time_t mdl_settler_due(apr_time_t now);

/** Says that the beat was moved to this time. */
void mdl_settler_renewed(apr_time_t until);

#endif
