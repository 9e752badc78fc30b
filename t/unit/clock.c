/* Times in texts: which are read, and as what. */
#include "base/clock.h"

#include "t/unit/tap.h"

static void reads(const char *text, const char *as, apr_pool_t *p)
{
    apr_time_t time;

    if (ok(mdl_clock_parse(&time, text) == APR_SUCCESS, text)) {
        is_str(mdl_clock_rfc3339(time, p), as, "it is that time");
    }
}

static void refuses(const char *text)
{
    apr_time_t time;

    is_int(mdl_clock_parse(&time, text), APR_EINVAL, text);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    reads("2026-11-21T00:36:20Z", "2026-11-21T00:36:20.000Z", p);
    reads("2026-11-21t00:36:20.1239999999z", "2026-11-21T00:36:20.123Z", p);
    reads("2026-11-21T00:36:20+01:30", "2026-11-20T23:06:20.000Z", p);
    reads("2024-02-29T00:00:00-12:00", "2024-02-29T12:00:00.000Z", p);
    reads("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z", p);
    refuses("2026-02-29T00:00:00Z");
    refuses("2026-11-31T23:59:59Z");
    refuses("2026-11-31T23:59:60Z");
    refuses("2026-11-30T23:59:61Z");
    refuses("2026-11-30T24:00:00Z");
    refuses("2026-11-30 00:00:00Z");
    refuses("2026-11-30T00:00:00");
    refuses("2026-11-30T00:00:00.Z");
    refuses("2026-11-30T00:00:00Z ");
    refuses("1969-12-31T23:59:59Z");
    refuses("");
    return tap_end(p);
}
