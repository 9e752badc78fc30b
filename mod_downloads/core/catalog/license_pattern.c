#include "core/catalog/license_pattern.h"

#include <string.h>

#include <apr_strings.h>

#include "base/crypto.h"

#define LETTERS "ABCDEFGHJKLMNPQRSTUVWXYZ"
#define DIGITS  "23456789"

#define PER_KEY     1000000 /* different keys for each key that a tag has */
#define SIZE_ENOUGH 1e18    /* a pattern that gives more is good for any number of keys */

/* What a character of a pattern stands for; NULL: for itself. */
static const char *pattern_choices(char of)
{
    switch (of) {
    case '#':
        return DIGITS;
    case '?':
        return LETTERS;
    case '*':
        return LETTERS DIGITS;
    default:
        return NULL;
    }
}

static char pattern_draw(const char *choices)
{
    unsigned n = (unsigned)strlen(choices);
    unsigned char drawn;

    do {
        mdl_random(&drawn, 1);
    } while (drawn >= 256 - 256 % n); /* higher bytes would favour some characters */
    return choices[drawn % n];
}

const char *mdl_license_pattern_key(const char *pattern, apr_pool_t *p)
{
    char *key = apr_pstrdup(p, pattern);

    for (char *at = key; *at != '\0'; at++) {
        const char *choices = pattern_choices(*at);

        if (choices != NULL) {
            *at = pattern_draw(choices);
        }
    }
    return key;
}

/* How many different keys a pattern gives; as good as any number from SIZE_ENOUGH on. */
static double pattern_size(const char *pattern)
{
    double size = 1;

    for (; *pattern != '\0' && size < SIZE_ENOUGH; pattern++) {
        const char *choices = pattern_choices(*pattern);

        size *= choices != NULL ? (double)strlen(choices) : 1;
    }
    return size;
}

apr_status_t mdl_license_pattern_check(const char *pattern, apr_int64_t keys,
                                       mdl_problem_t *problem, apr_pool_t *p)
{
    apr_int64_t most = (apr_int64_t)(pattern_size(pattern) / PER_KEY);

    if (keys <= most) {
        return APR_SUCCESS;
    }
    mdl_problem_count(problem, most, keys);
    return mdl_problem_set(
        problem, 422, "license_pattern_weak",
        apr_psprintf(
            p,
            "Keys of this pattern could be guessed: it is good for a tag with %" APR_INT64_T_FMT
            " keys, and there would be %" APR_INT64_T_FMT ". Put more of ?, # or * into it.",
            most, keys));
}
