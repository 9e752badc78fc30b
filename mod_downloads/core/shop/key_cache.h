/*
 * Verified keys in shared memory, so that a request needs no query to authenticate.  An entry
 * counts only while its epoch is the current one; every change of a key, of a shop's approval or
 * of its name moves the epoch, and each node asks for it every 250 ms at most (contract, section
 * 2).  It counts for MDL_KEY_CACHE_AGE at most: where an older database took the place of the one
 * that it is from, the epoch may be the same though the key is not there.
 *
 * Made by the parent, used by all its processes without a lock: a reader copies an entry between
 * two reads of its sequence number, a writer that finds an entry busy gives up.
 */
#ifndef MDL_CORE_SHOP_KEY_CACHE_H
#define MDL_CORE_SHOP_KEY_CACHE_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_time.h>

#include "base/http/url.h"
#include "core/shop/key.h"

#define MDL_KEY_CACHE_AGE apr_time_from_sec(5)

typedef struct mdl_key_cache_t mdl_key_cache_t;

/** Makes an empty cache in anonymous shared memory that lives as long as p. */
apr_status_t mdl_key_cache_create(mdl_key_cache_t **cache, apr_pool_t *p);

/** Who calls: a key, and the shop that every query is scoped to. */
typedef struct {
    char key_id[MDL_KEY_ID_LENGTH + 1];
    char key_name[MDL_KEY_NAME_MAX + 1];
    char shop_name[MDL_SHOP_NAME_MAX + 1];
    char shop_domain[MDL_HTTP_HOST_MAX + 1];
    apr_int64_t shop_id;
    mdl_key_scope_t scope;
} mdl_caller_t;

typedef struct {
    mdl_caller_t caller;
    unsigned char mac[MDL_SHA256_LENGTH];
    apr_time_t expires_at; /* 0 for never */
    apr_time_t known_at;   /* when the database was asked for it, by mdl_clock_monotonic */
} mdl_cached_key_t;

typedef enum {
    MDL_EPOCH_CURRENT, /* use the cache */
    MDL_EPOCH_ASK,     /* read the epoch from the database, then mdl_key_cache_set_epoch */
    MDL_EPOCH_EXPIRED  /* the same; if the database can't be asked, trust nothing */
} mdl_epoch_state_t;

/** Whether what is known of the epoch may be used at a time, of mdl_clock_monotonic.  One caller at
   a time is told to ask before a second has gone by. */
mdl_epoch_state_t mdl_key_cache_state(mdl_key_cache_t *cache, apr_time_t now);

/** Sets the epoch that was asked for at a time of mdl_clock_monotonic, taken before the query was
    sent.  A late answer is passed over. */
void mdl_key_cache_set_epoch(mdl_key_cache_t *cache, apr_int64_t epoch, apr_time_t asked_at);

/** Copies the entry of a key id; false when there is none that counts at a time, of
    mdl_clock_monotonic. */
int mdl_key_cache_get(mdl_key_cache_t *cache, const char *id, apr_time_t now,
                      mdl_cached_key_t *key);

/** Keeps a key that was verified under an epoch, read before the key was; no effect unless that
    epoch is the one set last. */
void mdl_key_cache_put(mdl_key_cache_t *cache, const mdl_cached_key_t *key, apr_int64_t epoch);

/** Notes when a key was used, by the wall clock; no effect when the key is not in the cache. */
void mdl_key_cache_used(mdl_key_cache_t *cache, const char *id, apr_time_t now);

/**
 * Steps over the keys used since they were last reported: *index begins at 0.  Returns 0 when
 * there is no more; id gets MDL_KEY_ID_LENGTH + 1 bytes.  For one caller, the background process.
 */
int mdl_key_cache_next_used(mdl_key_cache_t *cache, int *index, char *id, apr_time_t *used_at);

#endif
