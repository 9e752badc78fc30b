/*
 * Which shops are blocked, for requests that receive a body for long.  While there are any, the
 * settler's thread asks the database each second.
 */
#ifndef MDL_METERING_TAKEDOWN_H
#define MDL_METERING_TAKEDOWN_H

#include <apr_tables.h>
#include <apr_time.h>

/** Begins and ends that for a request; the first is called by mdl_settler_watch. */
void mdl_takedown_watch(void);
void mdl_takedown_unwatch(void);

/** Whether a shop is blocked, as was found out after a time, of mdl_clock_monotonic as all here;
   false while nothing was. */
int mdl_takedown_covers(apr_int64_t shop_id, apr_time_t since);

/** For the settler: whether any request wants to know, and the ids (apr_int64_t) that it has read
    at a time.
 */
int mdl_takedown_watched(void);
void mdl_takedown_set(const apr_array_header_t *shop_ids, apr_time_t asked_at);

#endif
