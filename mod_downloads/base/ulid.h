/*
 * Opaque ids that sort by creation time (ULID): "job_01J…".  48 bits of milliseconds and 80 random
 * bits, in 26 characters of Crockford's base 32, lower case.
 */
#ifndef MDL_BASE_ULID_H
#define MDL_BASE_ULID_H

#include <apr_pools.h>
#include <apr_time.h>

#define MDL_ULID_LENGTH 26

/** Returns prefix followed by a new ULID, in p.  Ends the process when the system has no random
    bytes. */
const char *mdl_ulid(const char *prefix, apr_pool_t *p);

/** Returns prefix followed by the lowest ULID of a time, in p. */
const char *mdl_ulid_first(const char *prefix, apr_time_t time, apr_pool_t *p);

/** The time in such an id, 0 if it is not valid. */
apr_time_t mdl_ulid_time(const char *prefix, const char *text);

/** Whether text is prefix followed by 26 characters of the alphabet. */
int mdl_ulid_valid(const char *prefix, const char *text);

#endif
