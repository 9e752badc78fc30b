/*
 * Time as the contract writes it: RFC 3339, UTC, "Z", milliseconds; and a clock to measure with.
 */
#ifndef MDL_BASE_CLOCK_H
#define MDL_BASE_CLOCK_H

#include <apr_pools.h>
#include <apr_time.h>

#define MDL_CLOCK_RFC3339_LENGTH 24

/**
 * Formats a time as "2026-11-21T00:36:20.123Z", allocated from p.  Milliseconds are cut, not
 * rounded; what lies outside the years 0 to 9999 becomes the nearest time inside.
 */
const char *mdl_clock_rfc3339(apr_time_t when, apr_pool_t *p);

/** The same into a buffer, with its closing NUL. */
void mdl_clock_rfc3339_to(char buffer[MDL_CLOCK_RFC3339_LENGTH + 1], apr_time_t when);

/** Formats a time as RFC 5322 section 3.3 wants it in an email's Date, in UTC ("+0000"). */
const char *mdl_clock_rfc5322(apr_time_t when, apr_pool_t *p);

/** Reads a time of RFC 3339, section 5.6, from 1970 on; a leap second is the next one.  APR_EINVAL
   for anything else. */
apr_status_t mdl_clock_parse(apr_time_t *when, const char *text);

/** A clock that is never set, for differences alone: the same for all processes of this machine,
    until it reboots. */
apr_time_t mdl_clock_monotonic(void);

#endif
