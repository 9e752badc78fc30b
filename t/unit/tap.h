/*
 * The Test Anything Protocol for unit programs: one line for each check; a failure also shows file,
 * line and the expected value.  prove reads it.
 */
#ifndef MDL_T_UNIT_TAP_H
#define MDL_T_UNIT_TAP_H

#include <stdio.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>

static int tap_count;
static int tap_failures;

static inline int tap_result(int passed, const char *name, const char *file, int line)
{
    tap_count++;
    tap_failures += !passed;
    printf("%sok %d - %s\n", passed ? "" : "not ", tap_count, name);
    if (!passed) {
        printf("#   at %s line %d\n", file, line);
    }
    fflush(stdout);
    return passed;
}

static inline int tap_is_str(const char *got, const char *expected, const char *name,
                             const char *file, int line)
{
    int same = got && expected ? strcmp(got, expected) == 0 : got == expected;

    if (!tap_result(same, name, file, line)) {
        printf("#   got:      %s\n#   expected: %s\n", got ? got : "(null)",
               expected ? expected : "(null)");
    }
    return same;
}

static inline int tap_is_int(long long got, long long expected, const char *name, const char *file,
                             int line)
{
    if (!tap_result(got == expected, name, file, line)) {
        printf("#   got:      %lld\n#   expected: %lld\n", got, expected);
    }
    return got == expected;
}

#define ok(passed, name)            tap_result(!!(passed), name, __FILE__, __LINE__)
#define is_str(got, expected, name) tap_is_str(got, expected, name, __FILE__, __LINE__)
#define is_int(got, expected, name)                                                                \
    tap_is_int((long long)(got), (long long)(expected), name, __FILE__, __LINE__)

/** Starts APR and returns the test's pool; it is never cleared, so main may return early. */
static inline apr_pool_t *tap_begin(void)
{
    apr_pool_t *p;

    apr_initialize();
    apr_pool_create(&p, NULL);
    return p;
}

/** Prints the plan; main returns the result. */
static inline int tap_end(apr_pool_t *p)
{
    apr_pool_destroy(p);
    apr_terminate();
    printf("1..%d\n", tap_count);
    return tap_failures ? 1 : 0;
}

#endif
