/*
 * Opaque ids that sort by creation time (ULID): "job_01J…".  48 bits of milliseconds and 80 random
 * bits, in 26 characters of Crockford's base 32, lower case.
 */
#ifndef MDL_BASE_ULID_H
#define MDL_BASE_ULID_H

#include <apr_pools.h>

#define MDL_ULID_LENGTH 26

/** Returns prefix followed by a new ULID, in p.  Ends the process when the system has no random
    bytes. */
const char *mdl_ulid(const char *prefix, apr_pool_t *p);

/** Whether text is prefix followed by 26 characters of the alphabet. */
int mdl_ulid_valid(const char *prefix, const char *text);

#endif
