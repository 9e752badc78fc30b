/*
 * Which shops are blocked, for long uploads.  While any request watches, the settler's thread asks
 * the database each second.
 */
#ifndef MDL_METERING_TAKEDOWN_H
#define MDL_METERING_TAKEDOWN_H

#include <apr_tables.h>
#include <apr_time.h>

/** Begin and end watching for a request; mdl_settler_watch and mdl_settler_unwatch call them. */
void mdl_takedown_watch(void);
void mdl_takedown_unwatch(void);

/** Whether a shop is blocked, by a query made after since (mdl_clock_monotonic, like all times
    here); false until there was one. */
int mdl_takedown_covers(apr_int64_t shop_id, apr_time_t since);

/** For the settler: whether any request watches; and sets the blocked shops' ids (apr_int64_t),
    read at asked_at. */
int mdl_takedown_watched(void);
void mdl_takedown_set(const apr_array_header_t *shop_ids, apr_time_t asked_at);

#endif
