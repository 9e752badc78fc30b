/*
 * Names, numbers and dates as people read them.
 */
#ifndef MDL_BASE_WORDS_H
#define MDL_BASE_WORDS_H

#include <apr_pools.h>
#include <apr_time.h>

/** Whether text is 1 to max bytes without a control character. */
int mdl_words_is_name(const char *text, apr_size_t max);

/** "532 bytes", "12.3 MB": decimal units, as download pages show them. */
const char *mdl_words_size(apr_int64_t bytes, apr_pool_t *p);

/** "21 November 2026", in UTC. */
const char *mdl_words_date(apr_time_t when, apr_pool_t *p);

#endif
