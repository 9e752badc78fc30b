#include "t/unit/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_shm.h>
#include <apr_strings.h>

#include "core/shop/key_cache.h"

#define ID  "0123456789abcdef"
#define MS  APR_TIME_C(1000)
#define NOW APR_TIME_C(1700000000000000)

static mdl_key_cache_t *new_cache(apr_pool_t *p)
{
    mdl_key_cache_t *cache;

    if (mdl_key_cache_create(&cache, p) != APR_SUCCESS) {
        printf("Bail out! no shared memory\n");
        exit(2);
    }
    return cache;
}

static mdl_cached_key_t key_of(const char *id, apr_int64_t shop_id)
{
    mdl_cached_key_t key = {.caller = {.shop_id = shop_id,
                                       .scope = MDL_KEY_SCOPE_FULL,
                                       .key_name = "till",
                                       .shop_name = "Example",
                                       .shop_domain = "shop.example"},
                            .expires_at = NOW + shop_id,
                            .known_at = NOW};

    memcpy(key.caller.key_id, id, sizeof key.caller.key_id);
    memset(key.mac, (int)(shop_id & 0xff), sizeof key.mac);
    return key;
}

static int is_same(const mdl_cached_key_t *one, const mdl_cached_key_t *other)
{
    const mdl_caller_t *a = &one->caller, *b = &other->caller;

    return strcmp(a->key_id, b->key_id) == 0 && strcmp(a->key_name, b->key_name) == 0 &&
           strcmp(a->shop_name, b->shop_name) == 0 && strcmp(a->shop_domain, b->shop_domain) == 0 &&
           a->shop_id == b->shop_id && a->scope == b->scope &&
           memcmp(one->mac, other->mac, sizeof one->mac) == 0 &&
           one->expires_at == other->expires_at;
}

static void put(mdl_key_cache_t *cache, const char *id, apr_int64_t shop_id, apr_int64_t epoch)
{
    mdl_cached_key_t key = key_of(id, shop_id);

    mdl_key_cache_put(cache, &key, epoch);
}

/* The shop of a key; 0 if it is not in the cache. */
static apr_int64_t get(mdl_key_cache_t *cache, const char *id)
{
    mdl_cached_key_t key;

    return mdl_key_cache_get(cache, id, NOW, &key) ? key.caller.shop_id : 0;
}

static void test_entries(apr_pool_t *p)
{
    mdl_key_cache_t *cache = new_cache(p);
    mdl_cached_key_t in = key_of(ID, 7), out;

    mdl_key_cache_set_epoch(cache, 5, NOW);
    ok(!mdl_key_cache_get(cache, ID, NOW, &out), "an empty cache has no key");
    mdl_key_cache_put(cache, &in, 5);
    ok(mdl_key_cache_get(cache, ID, NOW, &out), "a key that was put is found");
    ok(is_same(&in, &out), "it has all its members");
    ok(!mdl_key_cache_get(cache, "0123456789abcdeF", NOW, &out), "another key id is not found");
    put(cache, ID, 8, 5);
    is_int(get(cache, ID), 8, "putting a key again replaces it");
    ok(mdl_key_cache_get(cache, ID, NOW + MDL_KEY_CACHE_AGE - 1, &out), "it counts for a while");
    ok(!mdl_key_cache_get(cache, ID, NOW + MDL_KEY_CACHE_AGE, &out), "and no longer");
}

static void test_epochs(apr_pool_t *p)
{
    mdl_key_cache_t *cache = new_cache(p);

    mdl_key_cache_set_epoch(cache, 5, NOW);
    put(cache, ID, 1, 5);
    mdl_key_cache_set_epoch(cache, 5, NOW + 1);
    is_int(get(cache, ID), 1, "a key is found while the epoch stays");
    mdl_key_cache_set_epoch(cache, 6, NOW + 10);
    is_int(get(cache, ID), 0, "it is not found after the epoch has changed");
    mdl_key_cache_set_epoch(cache, 5, NOW + 9);
    is_int(get(cache, ID), 0, "a late answer with the older epoch does not bring it back");
    put(cache, ID, 2, 5);
    is_int(get(cache, ID), 0, "a key that was verified under the older epoch can't be put");
    put(cache, ID, 3, 6);
    is_int(get(cache, ID), 3, "a key that was verified under the current epoch is found");
    put(cache, ID, 2, 5);
    is_int(get(cache, ID), 3, "it is not replaced by one of an older epoch");
    put(cache, ID, 4, 7);
    is_int(get(cache, ID), 3, "it is not replaced by one of an epoch that was not set yet");
    mdl_key_cache_set_epoch(cache, 5, NOW + 11);
    is_int(get(cache, ID), 0,
           "keys are not found after the epoch went back, as with a restored backup");
    put(cache, ID, 5, 5);
    is_int(get(cache, ID), 5, "keys can be put under that epoch");
    mdl_key_cache_set_epoch(cache, 6, NOW + 12);
    is_int(get(cache, ID), 0,
           "earlier entries are not found when the epoch reaches its former number");
    mdl_key_cache_set_epoch(cache, 5, NOW + 13);
    is_int(get(cache, ID), 0, "earlier entries are not found when it goes back once more");
}

static void test_many(apr_pool_t *p)
{
    mdl_key_cache_t *cache = new_cache(p);
    int found = 0, wrong = 0;

    mdl_key_cache_set_epoch(cache, 1, NOW);
    for (int i = 1; i <= 20000; i++) {
        put(cache, apr_psprintf(p, "key%013d", i), i, 1);
    }
    for (int i = 1; i <= 20000; i++) {
        apr_int64_t shop = get(cache, apr_psprintf(p, "key%013d", i));

        found += shop == i;
        wrong += shop != 0 && shop != i;
    }
    ok(found >= 2000, "when more keys are put than fit, at least 2,000 are found");
    is_int(wrong, 0, "no key is mistaken for another");
    put(cache, ID, 9, 1);
    is_int(get(cache, ID), 9, "a new key can still be put");
}

/* The state of the epoch some milliseconds after NOW. */
static mdl_epoch_state_t state_after(mdl_key_cache_t *cache, int ms)
{
    return mdl_key_cache_state(cache, NOW + ms * MS);
}

static void test_state(apr_pool_t *p)
{
    mdl_key_cache_t *cache = new_cache(p);

    is_int(state_after(cache, 0), MDL_EPOCH_EXPIRED, "the epoch of a new cache is expired");
    mdl_key_cache_set_epoch(cache, 1, NOW);
    is_int(state_after(cache, 0), MDL_EPOCH_CURRENT, "the epoch is current when it was just read");
    is_int(state_after(cache, 250), MDL_EPOCH_CURRENT, "it is current for 250 ms");
    is_int(state_after(cache, 251), MDL_EPOCH_ASK, "after that the first caller is told to ask");
    is_int(state_after(cache, 252), MDL_EPOCH_CURRENT, "the other callers are not");
    is_int(state_after(cache, 501), MDL_EPOCH_CURRENT, "the first caller has 250 ms for asking");
    is_int(state_after(cache, 502), MDL_EPOCH_ASK,
           "if there is no answer by then, another caller is told to ask");
    is_int(state_after(cache, 503), MDL_EPOCH_CURRENT, "only one caller is told to ask");
    is_int(state_after(cache, 1001), MDL_EPOCH_ASK, "after 1 s every caller is told to ask");
    is_int(state_after(cache, 1001), MDL_EPOCH_ASK, "the next caller at the same time is, too");
    is_int(state_after(cache, 2000), MDL_EPOCH_ASK, "callers are told to ask for up to 2 s");
    is_int(state_after(cache, 2001), MDL_EPOCH_EXPIRED, "after 2 s the epoch is expired");
    mdl_key_cache_set_epoch(cache, 1, NOW + 1900 * MS);
    is_int(state_after(cache, 2001), MDL_EPOCH_CURRENT, "an answer makes it current again");
    mdl_key_cache_set_epoch(cache, 1, NOW + 100 * MS);
    is_int(state_after(cache, 2002), MDL_EPOCH_CURRENT,
           "an older answer that comes late changes nothing");
    is_int(state_after(cache, 0), MDL_EPOCH_EXPIRED,
           "the epoch is expired after the clock was set back");
}

static int used_since(mdl_key_cache_t *cache, char *id, apr_time_t *used_at)
{
    char each[MDL_KEY_ID_LENGTH + 1];
    apr_time_t at;
    int index = 0, n = 0;

    while (mdl_key_cache_next_used(cache, &index, each, &at)) {
        memcpy(id, each, sizeof each);
        *used_at = at;
        n++;
    }
    return n;
}

static void test_used(apr_pool_t *p)
{
    mdl_key_cache_t *cache = new_cache(p);
    char id[MDL_KEY_ID_LENGTH + 1] = "";
    apr_time_t used_at = 0;

    mdl_key_cache_set_epoch(cache, 1, NOW);
    put(cache, ID, 1, 1);
    is_int(used_since(cache, id, &used_at), 0, "an unused key is not reported");
    mdl_key_cache_used(cache, ID, NOW + 5);
    mdl_key_cache_used(cache, "ffffffffffffffff", NOW + 5);
    is_int(used_since(cache, id, &used_at), 1, "a used key is reported, an unknown one is not");
    is_str(id, ID, "its id is reported");
    is_int(used_at, NOW + 5, "the time of its use is reported");
    is_int(used_since(cache, id, &used_at), 0, "a use is reported once");
    mdl_key_cache_used(cache, ID, NOW + 9);
    is_int(used_since(cache, id, &used_at), 1, "the key is reported after another use");
}

/* Concurrent writers and readers.  All members of an entry are derived from its shop, so that a
   torn entry is noticed. */

#define KEYS  4
#define READS 1000000

static const char *const ids[KEYS] = {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc",
                                      "dddddddddddddddd"};
static atomic_int *stop;

static void *write_on(void *data)
{
    for (apr_int64_t n = 1; !atomic_load_explicit(stop, memory_order_relaxed); n++) {
        put(data, ids[n % KEYS], n * KEYS + n % KEYS, 1);
    }
    return NULL;
}

static long read_many(mdl_key_cache_t *cache, long *hits)
{
    long torn = 0;

    *hits = 0;
    for (long i = 0; i < READS; i++) {
        mdl_cached_key_t key;

        if (mdl_key_cache_get(cache, ids[i % KEYS], NOW, &key)) {
            mdl_cached_key_t whole = key_of(ids[i % KEYS], key.caller.shop_id);

            ++*hits;
            torn += key.caller.shop_id % KEYS != i % KEYS || !is_same(&key, &whole);
        }
    }
    return torn;
}

static void test_threads(apr_pool_t *p)
{
    mdl_key_cache_t *cache = new_cache(p);
    pthread_t writers[2];
    long hits, torn;

    atomic_store(stop, 0);
    mdl_key_cache_set_epoch(cache, 1, NOW);
    for (int i = 0; i < 2; i++) {
        pthread_create(&writers[i], NULL, write_on, cache);
    }
    torn = read_many(cache, &hits);
    atomic_store(stop, 1);
    for (int i = 0; i < 2; i++) {
        pthread_join(writers[i], NULL);
    }
    is_int(torn, 0, "a million reads beside two writing threads give no torn entry");
    ok(hits > 1000, "more than 1,000 of them give an entry");
}

static void test_processes(apr_pool_t *p)
{
    mdl_key_cache_t *cache = new_cache(p);
    pid_t writers[2];
    long hits, torn;

    atomic_store(stop, 0);
    mdl_key_cache_set_epoch(cache, 1, NOW);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        if ((writers[i] = fork()) == 0) {
            write_on(cache);
            _exit(0);
        }
    }
    torn = read_many(cache, &hits);
    atomic_store(stop, 1);
    for (int i = 0; i < 2; i++) {
        waitpid(writers[i], NULL, 0);
    }
    is_int(torn, 0, "a million reads beside two writing processes give no torn entry");
    ok(hits > 1000, "more than 1,000 of them give an entry");
    mdl_key_cache_set_epoch(cache, 2, NOW + 1);
    is_int(get(cache, ids[0]), 0,
           "keys that other processes put are not found after the epoch has changed");
}

int main(void)
{
    apr_pool_t *p = tap_begin();
    apr_shm_t *shm;

    if (apr_shm_create(&shm, sizeof *stop, NULL, p) != APR_SUCCESS) {
        return 2;
    }
    stop = apr_shm_baseaddr_get(shm);
    test_entries(p);
    test_epochs(p);
    test_many(p);
    test_state(p);
    test_used(p);
    test_threads(p);
    test_processes(p);
    return tap_end(p);
}
