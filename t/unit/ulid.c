#include <apr_strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ulid.h"
#include "t/unit/tap.h"

static apr_pool_t *p;

/* The milliseconds encoded in an id's first ten digits. */
static apr_int64_t millis_of(const char *digits)
{
    static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
    apr_int64_t millis = 0;

    for (int i = 0; i < 10; i++) {
        millis = millis * 32 + (strchr(alphabet, digits[i]) - alphabet);
    }
    return millis;
}

static void ids_are_ulids(void)
{
    apr_time_t before = apr_time_now() / 1000;
    const char *id = mdl_ulid("job_", p);
    apr_time_t after = apr_time_now() / 1000;
    apr_time_t until = apr_time_now() + 5000;
    const char *later;

    is_int(strlen(id), 4 + MDL_ULID_LENGTH, "an id is its prefix and 26 characters");
    ok(!strncmp(id, "job_", 4), "the prefix comes first");
    ok(mdl_ulid_valid("job_", id), "an id is valid");
    ok(millis_of(id + 4) >= before && millis_of(id + 4) <= after,
       "its first ten digits are the time in milliseconds");
    while (apr_time_now() < until) {
    }
    later = mdl_ulid("job_", p);
    ok(strcmp(id, later) < 0, "a later id sorts after an earlier one");
    ok(strcmp(mdl_ulid("", p) + 10, mdl_ulid("", p) + 10) != 0, "the rest is random");
}

static void all_random_digits_occur(void)
{
    int seen[MDL_ULID_LENGTH][256] = {{0}};
    int count = 0;

    for (int i = 0; i < 2000; i++) {
        const char *id = mdl_ulid("", p);

        for (int j = 10; j < MDL_ULID_LENGTH; j++) {
            count += !seen[j][(unsigned char)id[j]]++;
        }
    }
    is_int(count, 16 * 32, "every one of 32 digits occurs in each of 16 places");
}

static void an_id_has_its_time(void)
{
    apr_time_t at = APR_TIME_C(1794000000123000);
    const char *first = mdl_ulid_first("job_", at, p);

    is_int(mdl_ulid_time("job_", first), at, "the lowest id of a time has it");
    ok(strcmp(first, mdl_ulid_first("job_", at + 1000, p)) < 0, "and sorts before the next");
    ok(strcmp(mdl_ulid_first("", apr_time_now(), p), mdl_ulid("", p)) <= 0, "and before others");
    ok(mdl_ulid_time("req_", first) == 0, "an id with another prefix has none");
    ok(mdl_ulid_time("req_", "req_") == 0, "nor has one that is no ULID");
}

static void validity_is_strict(void)
{
    ok(mdl_ulid_valid("req_", "req_01j0000000zzzzzzzzzzzzzzzz"), "a well-formed id is valid");
    ok(mdl_ulid_valid("", "7zzzzzzzzzzzzzzzzzzzzzzzzz"), "the largest id is valid");
    ok(!mdl_ulid_valid("", "80000000000000000000000000"), "an id of more than 128 bits is invalid");
    ok(!mdl_ulid_valid("job_", "req_01j0000000zzzzzzzzzzzzzzzz"),
       "an id with another prefix is invalid");
    ok(!mdl_ulid_valid("job_", "job_01j0000000zzzzzzzzzzzzzzz"),
       "an id that is too short is invalid");
    ok(!mdl_ulid_valid("job_", "job_01j0000000zzzzzzzzzzzzzzzzz"),
       "an id that is too long is invalid");
    ok(!mdl_ulid_valid("job_", "job_01J0000000ZZZZZZZZZZZZZZZZ"), "an id in upper case is invalid");
    ok(!mdl_ulid_valid("job_", "job_01j0000000zzzzzzzzzzzzzzzu"), "an id with a \"u\" is invalid");
    ok(!mdl_ulid_valid("job_", "job_01j0000000zzzzzzz/../zzzzz"),
       "an id with a path in it is invalid");
    ok(!mdl_ulid_valid("job_", ""), "an empty id is invalid");
    ok(!mdl_ulid_valid("job_", "job_"), "the prefix alone is invalid");
}

static void times_are_formatted(void)
{
    apr_time_t when = apr_time_from_sec(1795221380) + 123456;

    is_str(mdl_clock_rfc3339(when, p), "2026-11-21T00:36:20.123Z",
           "a time is written with milliseconds");
    is_str(mdl_clock_rfc3339(0, p), "1970-01-01T00:00:00.000Z", "the epoch is written");
    is_str(mdl_clock_rfc3339(-1, p), "1969-12-31T23:59:59.999Z",
           "a time before the epoch is written");
    is_str(mdl_clock_rfc3339(apr_time_from_sec(951782400) + 999999, p), "2000-02-29T00:00:00.999Z",
           "a leap day is written, and microseconds are truncated");
    is_str(mdl_clock_rfc3339(APR_INT64_MAX, p), "9999-12-31T23:59:59.999Z",
           "the latest time is the end of the year 9999");
    is_str(mdl_clock_rfc3339(APR_INT64_MIN, p), "0000-01-01T00:00:00.000Z",
           "the earliest time is the beginning of the year 0");
    is_str(mdl_clock_rfc5322(when, p), "Sat, 21 Nov 2026 00:36:20 +0000",
           "the date of an email is written");
    is_str(mdl_clock_rfc5322(apr_time_from_sec(1785542400), p), "Sat, 01 Aug 2026 00:00:00 +0000",
           "the day in an email's date has two digits");
}

static char logged[4096];
static int logged_line;
static apr_status_t logged_rv;

static void keep(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                 const char *message)
{
    (void)file;
    (void)level;
    apr_cpystrn(logged, message, sizeof logged);
    logged_line = line;
    logged_rv = rv;
}

static void log_lines_reach_the_sink(void)
{
    int line;

    mdl_log(MDL_LOG_ERR, 0, "MDL0000: there is no sink");
    mdl_log_set_sink(keep);
    line = __LINE__ + 1;
    mdl_log(MDL_LOG_INFO, APR_EINVAL, "MDL0000: %d of %s", 3, "4");
    is_str(logged, "MDL0000: 3 of 4", "a line reaches the sink");
    is_int(logged_line, line, "its line number reaches the sink");
    is_int(logged_rv, APR_EINVAL, "its status reaches the sink");
    mdl_log(MDL_LOG_INFO, 0, "MDL0000: %s", "a\r\nMDL0000: b\x1B[31m");
    is_str(logged, "MDL0000: a  MDL0000: b [31m",
           "control characters in a message are replaced by spaces");
    mdl_log(MDL_LOG_INFO, 0, "%03000d", 1);
    is_int(strlen(logged), 2000, "a long line is truncated");
    mdl_log_set_sink(NULL);
    mdl_log(MDL_LOG_INFO, 0, "MDL0000: dropped");
    is_int(strlen(logged), 2000, "lines are dropped without a sink");
}

int main(void)
{
    p = tap_begin();
    ids_are_ulids();
    all_random_digits_occur();
    an_id_has_its_time();
    validity_is_strict();
    times_are_formatted();
    log_lines_reach_the_sink();
    return tap_end(p);
}
