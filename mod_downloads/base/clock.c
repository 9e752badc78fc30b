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

/* Reads a fixed number of digits; -1 for anything else. */
static int clock_digits(const char **at, int count)
{
    int value = 0;

    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9') {
            return -1;
        }
        value = value * 10 + (**at - '0');
    }
    return value;
}

/* Reads the character before, then count digits of a value from 0 to most; -1 for anything else. */
static int clock_field(const char **at, char before, int count, int most)
{
    int value;

    if (before != '\0' && *(*at)++ != before) {
        return -1;
    }
    value = clock_digits(at, count);
    return value <= most ? value : -1;
}

/* Reads a fraction of a second; digits beyond microseconds are ignored. */
static int clock_fraction(const char **at)
{
    int micros = 0;

    if (**at != '.') {
        return 0;
    }
    (*at)++;
    if (**at < '0' || **at > '9') {
        return -1;
    }
    for (int unit = 100000; **at >= '0' && **at <= '9'; (*at)++, unit /= 10) {
        micros += (**at - '0') * unit;
    }
    return micros;
}

/* Reads a zone, "Z" or an offset; *seconds gets how far it is ahead of UTC. */
static apr_status_t clock_zone(const char **at, int *seconds)
{
    int sign = **at == '-' ? -1 : 1, hours, minutes;

    *seconds = 0;
    if (**at == 'Z' || **at == 'z') {
        (*at)++;
        return APR_SUCCESS;
    }
    if (**at != '+' && **at != '-') {
        return APR_EINVAL;
    }
    hours = clock_field(at, **at, 2, 23);
    minutes = hours >= 0 ? clock_field(at, ':', 2, 59) : -1;
    *seconds = sign * (hours * 3600 + minutes * 60);
    return minutes >= 0 ? APR_SUCCESS : APR_EINVAL;
}

apr_status_t mdl_clock_parse(apr_time_t *when, const char *text)
{
    struct tm f = {0}, again;
    int micros, zone;
    time_t t;

    if ((f.tm_year = clock_field(&text, '\0', 4, 9999)) < 1970 ||
        (f.tm_mon = clock_field(&text, '-', 2, 12)) < 1 ||
        (f.tm_mday = clock_field(&text, '-', 2, 31)) < 1 || (*text != 'T' && *text != 't') ||
        (f.tm_hour = clock_field(&text, *text, 2, 23)) < 0 ||
        (f.tm_min = clock_field(&text, ':', 2, 59)) < 0 ||
        (f.tm_sec = clock_field(&text, ':', 2, 60)) < 0 || (micros = clock_fraction(&text)) < 0 ||
        clock_zone(&text, &zone) != APR_SUCCESS || *text != '\0') {
        return APR_EINVAL;
    }
    f.tm_year -= 1900;
    f.tm_mon--;
    again = f;
    again.tm_sec = 0; /* a leap second would begin another day */
    t = timegm(&again) + f.tm_sec;
    if (again.tm_mday != f.tm_mday) {
        return APR_EINVAL; /* such as 30 February */
    }
    *when = apr_time_from_sec(t - zone) + micros;
    return *when > 0 ? APR_SUCCESS : APR_EINVAL;
}

apr_time_t mdl_clock_monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return apr_time_make(now.tv_sec, now.tv_nsec / 1000);
}
