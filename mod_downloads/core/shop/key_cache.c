#include "core/shop/key_cache.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_shm.h>

#define ENTRIES 4096 /* a power of two */
#define PROBES  8
#define ASK_AGE apr_time_from_msec(250)
#define ALL_ASK apr_time_from_sec(1)

typedef struct {
    atomic_uint sequence; /* odd while the entry is written */
    atomic_llong used_at;
    apr_time_t reported_at; /* only used by the background process */
    apr_int64_t version;    /* of the table when the entry was written */
    mdl_cached_key_t key;
} entry_t;

typedef struct {
    atomic_llong epoch;
    atomic_llong version; /* counts changes of epoch; entries of another version are invalid */
    atomic_llong asked_at;
    atomic_llong claimed_at;
    entry_t entries[ENTRIES];
} table_t;

struct mdl_key_cache_t {
    table_t *table;
};

apr_status_t mdl_key_cache_create(mdl_key_cache_t **cache, apr_pool_t *p)
{
    apr_shm_t *shm;
    apr_status_t rv = apr_shm_create(&shm, sizeof(table_t), NULL, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *cache = apr_palloc(p, sizeof **cache);
    (*cache)->table = apr_shm_baseaddr_get(shm);
    memset((*cache)->table, 0, sizeof(table_t));
    return APR_SUCCESS;
}

mdl_epoch_state_t mdl_key_cache_state(mdl_key_cache_t *cache, apr_time_t now)
{
    table_t *table = cache->table;
    apr_time_t age = now - atomic_load(&table->asked_at);
    long long claimed = atomic_load(&table->claimed_at);

    if (age < 0 || age > ALL_ASK) {
        return age < 0 || age > 2 * ALL_ASK ? MDL_EPOCH_EXPIRED : MDL_EPOCH_ASK;
    }
    /* A claim expires after ASK_AGE, in case its holder died. */
    if (age > ASK_AGE && now - claimed > ASK_AGE &&
        atomic_compare_exchange_strong(&table->claimed_at, &claimed, now)) {
        return MDL_EPOCH_ASK;
    }
    return MDL_EPOCH_CURRENT;
}

void mdl_key_cache_set_epoch(mdl_key_cache_t *cache, apr_int64_t epoch, apr_time_t asked_at)
{
    table_t *table = cache->table;
    long long known = atomic_load(&table->asked_at);

    do {
        if (asked_at < known) {
            return; /* a late answer */
        }
    } while (!atomic_compare_exchange_weak(&table->asked_at, &known, asked_at));
    /* Also if the epoch went back, as after a backup was restored. */
    if (atomic_exchange(&table->epoch, epoch) != epoch) {
        atomic_fetch_add(&table->version, 1);
    }
}

static unsigned cache_hash(const char *id)
{
    apr_ssize_t length = MDL_KEY_ID_LENGTH;

    return apr_hashfunc_default(id, &length);
}

/* Copies an entry; false if it is another key's, or is written at the same time. */
static int cache_copy(entry_t *entry, const char *id, mdl_cached_key_t *key, apr_int64_t *version)
{
    unsigned before = atomic_load_explicit(&entry->sequence, memory_order_acquire);

    if (before & 1) {
        return 0;
    }
    memcpy(key, &entry->key, sizeof *key);
    *version = entry->version;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&entry->sequence, memory_order_relaxed) == before &&
           memcmp(key->caller.key_id, id, sizeof key->caller.key_id) == 0;
}

int mdl_key_cache_get(mdl_key_cache_t *cache, const char *id, apr_time_t now, mdl_cached_key_t *key)
{
    unsigned at = cache_hash(id);

    for (unsigned i = 0; i < PROBES; i++) {
        apr_int64_t version;

        if (cache_copy(&cache->table->entries[(at + i) % ENTRIES], id, key, &version)) {
            return version == atomic_load(&cache->table->version) &&
                   now - key->known_at < MDL_KEY_CACHE_AGE;
        }
    }
    return 0;
}

/* The entry of a key or, if it has none, the one to take: empty or outdated, else the first. */
static entry_t *cache_place(table_t *table, const char *id)
{
    unsigned at = cache_hash(id);
    entry_t *vacant = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        entry_t *entry = &table->entries[(at + i) % ENTRIES];

        /* it is being written, or its writer was killed */
        if (atomic_load(&entry->sequence) & 1) {
            continue;
        }
        if (memcmp(entry->key.caller.key_id, id, MDL_KEY_ID_LENGTH) == 0) {
            return entry;
        }
        if (vacant == NULL && entry->version != atomic_load(&table->version)) {
            vacant = entry;
        }
    }
    return vacant != NULL ? vacant : &table->entries[at % ENTRIES];
}

void mdl_key_cache_put(mdl_key_cache_t *cache, const mdl_cached_key_t *key, apr_int64_t epoch)
{
    long long version = atomic_load(&cache->table->version);
    entry_t *entry = cache_place(cache->table, key->caller.key_id);
    unsigned sequence = atomic_load(&entry->sequence);

    if (atomic_load(&cache->table->epoch) != epoch || (sequence & 1) ||
        !atomic_compare_exchange_strong(&entry->sequence, &sequence, sequence + 1)) {
        return;
    }
    atomic_thread_fence(memory_order_release);
    memcpy(&entry->key, key, sizeof *key);
    entry->version = version;
    atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
}

void mdl_key_cache_used(mdl_key_cache_t *cache, const char *id, apr_time_t now)
{
    unsigned at = cache_hash(id);

    for (unsigned i = 0; i < PROBES; i++) {
        entry_t *entry = &cache->table->entries[(at + i) % ENTRIES];

        if (memcmp(entry->key.caller.key_id, id, MDL_KEY_ID_LENGTH) == 0) {
            atomic_store_explicit(&entry->used_at, now, memory_order_relaxed);
            return;
        }
    }
}

int mdl_key_cache_next_used(mdl_key_cache_t *cache, int *index, char *id, apr_time_t *used_at)
{
    for (; *index < ENTRIES; ++*index) {
        entry_t *entry = &cache->table->entries[*index];
        mdl_cached_key_t key;
        apr_int64_t version;

        *used_at = atomic_load(&entry->used_at);
        if (*used_at != entry->reported_at &&
            cache_copy(entry, entry->key.caller.key_id, &key, &version)) {
            entry->reported_at = *used_at;
            memcpy(id, key.caller.key_id, sizeof key.caller.key_id);
            ++*index;
            return 1;
        }
    }
    return 0;
}
