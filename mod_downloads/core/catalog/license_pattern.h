/*
 * Patterns that license keys are made by.  In a pattern "#" stands for a random digit, "?" for a
 * random capital letter, "*" for either, and every other character for itself.  Made keys have no
 * 0, 1, I and O, which people mistake for each other.
 */
#ifndef MDL_CORE_CATALOG_LICENSE_PATTERN_H
#define MDL_CORE_CATALOG_LICENSE_PATTERN_H

#include <apr_pools.h>

#include "core/problem.h"

/** The most characters of a pattern. */
#define MDL_LICENSE_PATTERN_MAX 100

/** A key of the pattern, in p, each equally likely. */
const char *mdl_license_pattern_key(const char *pattern, apr_pool_t *p);

/**
 * Refuses a pattern by which a key of the tag could be guessed, when the tag has that many keys: it
 * must give a million different keys for each of them.  422 license_pattern_weak, with the number
 * of keys that the pattern is good for as the limit.
 */
apr_status_t mdl_license_pattern_check(const char *pattern, apr_int64_t keys,
                                       mdl_problem_t *problem, apr_pool_t *p);

#endif
