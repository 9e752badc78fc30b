/*
 * A cache of verified keys in shared memory, so that a request needs no query to authenticate.  An
 * entry is only valid while its epoch is current: every change of a key, or of a shop's approval or
 * name, moves the epoch, and each node asks for the epoch every 250 ms at most (contract, section
 * 2).  An entry is valid for at most MDL_KEY_CACHE_AGE: if an older database is restored, the epoch
 * may be the same although the key does not exist.
 *
 * The parent makes the cache, and all its processes use it without a lock: a reader copies an entry
 * between two reads of its sequence number, and a writer gives up when the entry is busy.
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

/** The caller: a key, and the shop that every query is scoped to. */
typedef struct {
    char key_id[MDL_KEY_ID_LENGTH + 1];
    char key_name[MDL_KEY_NAME_MAX + 1];
    char shop_name[4 * MDL_SHOP_NAME_MAX + 1];
    char shop_domain[MDL_HTTP_HOST_MAX + 1];
    apr_int64_t shop_id;
    mdl_key_scope_t scope;
} mdl_caller_t;

typedef struct {
    mdl_caller_t caller;
    unsigned char mac[MDL_SHA256_LENGTH];
    apr_time_t expires_at; /* 0: never */
    apr_time_t known_at;   /* when the database was asked, by mdl_clock_monotonic */
} mdl_cached_key_t;

typedef enum {
    MDL_EPOCH_CURRENT, /* use the cache */
    MDL_EPOCH_ASK,     /* read the epoch from the database, then call mdl_key_cache_set_epoch */
    MDL_EPOCH_EXPIRED  /* the same; if the database does not answer, don't use the cache */
} mdl_epoch_state_t;

/** Whether the known epoch is recent enough at a time, by mdl_clock_monotonic.  In the first
    second, only one caller at a time is told to ask. */
mdl_epoch_state_t mdl_key_cache_state(mdl_key_cache_t *cache, apr_time_t now);

/** Sets the epoch. asked_at, by mdl_clock_monotonic, was taken before the query was sent.  A late
    answer is ignored. */
void mdl_key_cache_set_epoch(mdl_key_cache_t *cache, apr_int64_t epoch, apr_time_t asked_at);

/** Copies the entry of a key id; false unless it is valid now, by mdl_clock_monotonic. */
int mdl_key_cache_get(mdl_key_cache_t *cache, const char *id, apr_time_t now,
                      mdl_cached_key_t *key);

/** Stores a verified key. epoch was read before the key; no effect unless it is the latest one. */
void mdl_key_cache_put(mdl_key_cache_t *cache, const mdl_cached_key_t *key, apr_int64_t epoch);

/** Records when a key was used, by the wall clock; no effect unless the key is in the cache. */
void mdl_key_cache_used(mdl_key_cache_t *cache, const char *id, apr_time_t now);

/**
 * Finds the next key used since it was last reported; *index begins at 0. Returns 0 when there are
 * no more; id gets MDL_KEY_ID_LENGTH + 1 bytes.  For a single caller, the background process.
 */
int mdl_key_cache_next_used(mdl_key_cache_t *cache, int *index, char *id, apr_time_t *used_at);

#endif
