/*
 * Retention times (DownloadsKeep), after which the background process prunes old rows.
 */
#ifndef MDL_CORE_SETTINGS_KEEP_H
#define MDL_CORE_SETTINGS_KEEP_H

#include <apr_pools.h>
#include <apr_time.h>

#define MDL_KEEP_FOREVER APR_INT64_MAX

typedef struct {
    apr_interval_time_t jobs;      /* after they have ended */
    apr_interval_time_t uploads;   /* after they were completed, aborted or expired */
    apr_interval_time_t emails;    /* after they were queued, if the order has a newer one */
    apr_interval_time_t events;    /* after they happened */
    apr_interval_time_t downloads; /* after they began; longer than any session may last */
    apr_interval_time_t bounces;   /* processed bounce messages, after they came */
    apr_interval_time_t audit;
} mdl_keep_t;

/** Sets every default. */
void mdl_keep_init(mdl_keep_t *keep);

/** Sets a time by a word such as "jobs=30", in days, or "audit=forever".  Returns NULL, or the end
    of a sentence that begins with the directive's name. */
const char *mdl_keep_set(mdl_keep_t *keep, const char *word, apr_pool_t *p);

#endif
