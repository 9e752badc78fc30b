/*
 * A token bucket for each API key, over all processes of a node (contract, section 5), kept as a
 * virtual scheduling clock (GCRA): one 64-bit word in shared memory says when the bucket will be
 * full again, and one compare-and-swap takes tokens, so that the limit is exact without a lock.
 */
#ifndef MDL_CORE_SHOP_RATE_LIMIT_H
#define MDL_CORE_SHOP_RATE_LIMIT_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

#include "core/settings/settings.h"

typedef struct mdl_rate_limit_t mdl_rate_limit_t;

/** Makes full buckets in anonymous shared memory that lives as long as p: until httpd restarts. */
apr_status_t mdl_rate_limit_create(mdl_rate_limit_t **limit, const mdl_settings_t *settings,
                                   apr_pool_t *p);

typedef struct {
    int allowed;
    int remaining;               /* tokens */
    apr_interval_time_t full_in; /* until the bucket is full */
    apr_interval_time_t more_in; /* until what was refused would be there; when it was allowed,
                                    until there is another token, 0 for a full bucket */
} mdl_rate_state_t;

/** Takes cost tokens from the bucket of a key, or none where there are too few; 0 only looks.  now
    is of mdl_clock_monotonic.  Any thread of any process may call. */
void mdl_rate_limit_take(mdl_rate_limit_t *limit, const char *key_id, int cost, apr_time_t now,
                         mdl_rate_state_t *state);

#endif
