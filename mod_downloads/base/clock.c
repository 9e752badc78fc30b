#include "base/clock.h"

#include <time.h>

#include <apr_strings.h>

#define FIRST_SECOND (-APR_INT64_C(62167219200)) /* 0000-01-01T00:00:00Z */
#define LAST_SECOND  APR_INT64_C(253402300799)   /* 9999-12-31T23:59:59Z */

/* Splits a time into UTC fields and milliseconds, clamped to four-digit years. */
static int clock_explode(struct tm *fields, apr_time_t when)
{
    apr_int64_t seconds = when / APR_USEC_PER_SEC;
    apr_int64_t micros = when % APR_USEC_PER_SEC;
    time_t t;

    if (micros < 0) {
        seconds--;
        micros += APR_USEC_PER_SEC;
    }
    if (seconds < FIRST_SECOND) {
        seconds = FIRST_SECOND;
        micros = 0;
    } else if (seconds > LAST_SECOND) {
        seconds = LAST_SECOND;
        micros = APR_USEC_PER_SEC - 1;
    }
    t = (time_t)seconds;
    gmtime_r(&t, fields);
    return (int)(micros / 1000);
}

void mdl_clock_rfc3339_to(char buffer[MDL_CLOCK_RFC3339_LENGTH + 1], apr_time_t when)
{
    struct tm f;
    int millis = clock_explode(&f, when);

    apr_snprintf(buffer, MDL_CLOCK_RFC3339_LENGTH + 1, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                 f.tm_year + 1900, f.tm_mon + 1, f.tm_mday, f.tm_hour, f.tm_min, f.tm_sec, millis);
}

const char *mdl_clock_rfc3339(apr_time_t when, apr_pool_t *p)
{
    char *text = apr_palloc(p, MDL_CLOCK_RFC3339_LENGTH + 1);

    mdl_clock_rfc3339_to(text, when);
    return text;
}

const char *mdl_clock_rfc5322(apr_time_t when, apr_pool_t *p)
{
    struct tm f;

    clock_explode(&f, when);
    return apr_psprintf(p, "%s, %02d %s %04d %02d:%02d:%02d +0000", apr_day_snames[f.tm_wday],
                        f.tm_mday, apr_month_snames[f.tm_mon], f.tm_year + 1900, f.tm_hour,
                        f.tm_min, f.tm_sec);
}

apr_time_t mdl_clock_monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return apr_time_make(now.tv_sec, now.tv_nsec / 1000);
}
