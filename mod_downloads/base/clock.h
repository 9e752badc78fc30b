/*
 * Times in the contract's format (RFC 3339, UTC, "Z", milliseconds), and a monotonic clock.
 */
#ifndef MDL_BASE_CLOCK_H
#define MDL_BASE_CLOCK_H

#include <apr_pools.h>
#include <apr_time.h>

#define MDL_CLOCK_RFC3339_LENGTH 24

/**
 * Formats a time as "2026-11-21T00:36:20.123Z", allocated from p.  Milliseconds are cut, not
 * rounded; a time outside the years 0 to 9999 is clamped to them.
 */
const char *mdl_clock_rfc3339(apr_time_t when, apr_pool_t *p);

/** Formats a time as mdl_clock_rfc3339 does, into a buffer, with a closing NUL. */
void mdl_clock_rfc3339_to(char buffer[MDL_CLOCK_RFC3339_LENGTH + 1], apr_time_t when);

/** Formats a time as RFC 5322 section 3.3 wants it in an email's Date, in UTC ("+0000"). */
const char *mdl_clock_rfc5322(apr_time_t when, apr_pool_t *p);

/** Parses a time (RFC 3339 section 5.6) from 1970 on; a leap second becomes the next second.
    APR_EINVAL for anything else. */
apr_status_t mdl_clock_parse(apr_time_t *when, const char *text);

/** A monotonic clock, in microseconds: only differences mean anything.  All processes of this
    machine share it until it reboots. */
apr_time_t mdl_clock_monotonic(void);

#endif
