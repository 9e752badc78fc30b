/*
 * How long a routine of the background process may work at a time, and the time that it goes by.
 */
#ifndef MDL_WORKER_TURN_H
#define MDL_WORKER_TURN_H

#include "base/clock.h"
#include "db/reconnect.h"

#define MDL_MINUTE apr_time_from_sec(60)
#define MDL_HOUR   apr_time_from_sec(3600)
#define MDL_DAY    (24 * MDL_HOUR)
#define MDL_TURN   apr_time_from_sec(1)    /* then a routine leaves the rest to the next turn */
#define MDL_SOON   apr_time_from_msec(100) /* the loop renews leases first */

/** Whether a turn is over that began at that time, by mdl_clock_monotonic. */
int mdl_turn_is_over(apr_time_t began);

/**
 * The time on which all nodes agree: a node whose clock is ahead must not remove others' new rows.
 * Errors: mdl_reconnect_read's.
 */
apr_status_t mdl_turn_now(mdl_reconnect_t *database, apr_time_t *now, apr_pool_t *p);

#endif
