#include "core/shop/rate_limit.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_shm.h>

#define BUCKETS 65536 /* a power of two */
#define PROBES  64
#define MINUTE  apr_time_from_sec(60)

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "other processes would not see libatomic's locks");

typedef struct {
    atomic_ullong owner;  /* of a key's id; 0: nobody's */
    atomic_llong full_at; /* when all tokens are back */
} bucket_t;

struct mdl_rate_limit_t {
    const mdl_settings_t *settings;
    bucket_t *buckets;
};

apr_status_t mdl_rate_limit_create(mdl_rate_limit_t **limit, const mdl_settings_t *settings,
                                   apr_pool_t *p)
{
    apr_shm_t *shm;
    apr_status_t rv = apr_shm_create(&shm, BUCKETS * sizeof(bucket_t), NULL, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *limit = apr_palloc(p, sizeof **limit);
    (*limit)->settings = settings;
    (*limit)->buckets = apr_shm_baseaddr_get(shm);
    memset((*limit)->buckets, 0, BUCKETS * sizeof(bucket_t));
    return APR_SUCCESS;
}

/* 64 of the 95 random bits of a key id. */
static unsigned long long rate_limit_name(const char *key_id)
{
    unsigned long long name = 14695981039346656037ULL;

    for (; *key_id != '\0'; key_id++) {
        name = (name ^ (unsigned char)*key_id) * 1099511628211ULL;
    }
    return name != 0 ? name : 1;
}

/* A bucket belongs to the first key that takes it, until httpd restarts.  Where all near places are
   taken, keys share one: too strict, never too lax. */
static bucket_t *rate_limit_bucket(mdl_rate_limit_t *limit, const char *key_id)
{
    unsigned long long name = rate_limit_name(key_id);

    for (unsigned i = 0; i < PROBES; i++) {
        bucket_t *bucket = &limit->buckets[(name + i) % BUCKETS];
        unsigned long long owner = 0;

        if (atomic_compare_exchange_strong(&bucket->owner, &owner, name) || owner == name) {
            return bucket;
        }
    }
    return &limit->buckets[name % BUCKETS];
}

void mdl_rate_limit_take(mdl_rate_limit_t *limit, const char *key_id, int cost, apr_time_t now,
                         mdl_rate_state_t *state)
{
    const mdl_settings_t *settings = limit->settings;
    apr_interval_time_t token = MINUTE / settings->rate_refill;
    apr_interval_time_t whole = token * settings->rate_burst;
    bucket_t *bucket = rate_limit_bucket(limit, key_id);
    long long full_at = atomic_load(&bucket->full_at);
    apr_time_t then;

    do {
        then = (full_at > now ? full_at : now) + cost * token;
        state->allowed = then <= now + whole;
    } while (state->allowed && cost > 0 &&
             !atomic_compare_exchange_weak(&bucket->full_at, &full_at, then));
    if (state->allowed) {
        state->full_in = then - now;
        state->more_in = state->full_in > 0 ? (state->full_in - 1) % token + 1 : 0;
    } else {
        state->full_in = then - now - cost * token;
        state->more_in = then - now - whole;
    }
    /* Another thread's now may be later than ours, and the bucket emptier than whole. */
    state->remaining = state->full_in < whole ? (int)((whole - state->full_in) / token) : 0;
}
