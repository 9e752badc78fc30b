#include "core/shop/rate_limit.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_shm.h>

#include <apr_strings.h>

#include "base/crypto.h"
#include "base/http/address.h"
#include "core/metrics.h"

#define BUCKETS 65536 /* of each kind; a power of two */
#define PROBES  64
#define MINUTE  apr_time_from_sec(60)
#define HOUR    apr_time_from_sec(3600)

#define SIGN_IN_USER    10 /* passwords tried in SIGN_IN_TIME, for a user */
#define SIGN_IN_NETWORK 30 /* from a network */
#define SIGN_IN_TIME    (15 * MINUTE)

#define FIND_NETWORK 10 /* requests for links in an hour, from a network */

#define NETWORK_LENGTH 19  /* of an address as text (mdl_address_text) */
#define FORGED_LINES   120 /* of the log in a minute, without DownloadsRateLimit */

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "other processes would not see libatomic's locks");
_Static_assert(MDL_RATE_KINDS == MDL_LIMITS, "mdl_limit_names needs a name for each kind");

typedef struct {
    atomic_ullong owner;  /* hash of a name; 0: none */
    atomic_llong full_at; /* when the bucket is full */
} bucket_t;

typedef bucket_t buckets_t[BUCKETS];

typedef struct {
    int size;                  /* tokens of a full bucket */
    apr_interval_time_t token; /* time until a token comes back */
} rate_t;

struct mdl_rate_limit_t {
    rate_t rates[MDL_RATE_KINDS];
    unsigned long long seed;
    buckets_t *buckets; /* of each kind */
};

/* The bucket holds as many tokens as come back in a minute. */
static rate_t rate_of_minute(int size)
{
    return (rate_t){size, size > 0 ? MINUTE / size : 0};
}

static rate_t rate_of_hour(int size)
{
    return (rate_t){size, size > 0 ? HOUR / size : 0};
}

static void rates_set_mail(rate_t *rates, int rate)
{
    rates[MDL_RATE_MAIL] = rate_of_hour(rate);
    rates[MDL_RATE_NEWS] = rate_of_hour((rate + 1) / 2);
}

static void rates_set(rate_t *rates, const mdl_settings_t *settings)
{
    apr_interval_time_t token = MINUTE / settings->rate_refill;
    apr_interval_time_t shared = token / settings->rate_shop_factor;

    int networks = settings->rate_limit ? settings->rate_network : 0;

    rates[MDL_RATE_KEY] = (rate_t){settings->rate_burst, token};
    rates[MDL_RATE_SHOP] = (rate_t){settings->rate_burst * settings->rate_shop_factor,
                                    shared > 0 ? shared : 1};
    rates_set_mail(rates, settings->mail_rate);
    rates[MDL_RATE_MAIL_LINE] = (rate_t){1, HOUR};
    rates[MDL_RATE_SIGN_IN_USER] = (rate_t){SIGN_IN_USER, SIGN_IN_TIME / SIGN_IN_USER};
    rates[MDL_RATE_SIGN_IN_NETWORK] = (rate_t){SIGN_IN_NETWORK, SIGN_IN_TIME / SIGN_IN_NETWORK};
    rates[MDL_RATE_FIND] = rate_of_hour(FIND_NETWORK);
    rates[MDL_RATE_PAGE] = rate_of_minute(settings->rate_limit ? settings->rate_pages : 0);
    rates[MDL_RATE_PART] = rate_of_minute(settings->rate_limit ? settings->rate_parts : 0);
    rates[MDL_RATE_OPEN] = rate_of_minute(networks);
    rates[MDL_RATE_FORGED] = rate_of_minute(networks > 0 ? networks : FORGED_LINES);
}

apr_status_t mdl_rate_limit_create(mdl_rate_limit_t **limit, const mdl_settings_t *settings,
                                   apr_pool_t *p)
{
    apr_shm_t *shm;
    apr_status_t rv = apr_shm_create(&shm, MDL_RATE_KINDS * sizeof(buckets_t), NULL, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *limit = apr_pcalloc(p, sizeof **limit);
    rates_set((*limit)->rates, settings);
    mdl_random((unsigned char *)&(*limit)->seed, sizeof(*limit)->seed);
    /* The memory is zero already; writing it would make the system allocate unused buckets, too. */
    (*limit)->buckets = apr_shm_baseaddr_get(shm);
    return APR_SUCCESS;
}

void mdl_rate_limit_set_mail(mdl_rate_limit_t *limit, int rate)
{
    rates_set_mail(limit->rates, rate);
}

/* FNV-1a, and MurmurHash's finalizer.  The seed keeps an attacker from choosing colliding names. */
static unsigned long long rate_limit_hash(const mdl_rate_limit_t *limit, const char *name)
{
    unsigned long long hash = 14695981039346656037ULL ^ limit->seed;

    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 1099511628211ULL;
    }
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdULL;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ULL;
    hash ^= hash >> 33;
    return hash != 0 ? hash : 1;
}

/* The bucket of a name; NULL: none, and *vacant is the bucket to take, *owner its owner. */
static bucket_t *bucket_find(buckets_t buckets, unsigned long long name, bucket_t **vacant,
                             unsigned long long *owner)
{
    long long earliest = APR_INT64_MAX;

    *owner = 1;
    for (unsigned i = 0; i < PROBES && *owner != 0; i++) {
        bucket_t *bucket = &buckets[(name + i) % BUCKETS];
        unsigned long long its_owner = atomic_load(&bucket->owner);
        long long full_at = atomic_load(&bucket->full_at);

        if (its_owner == name) {
            return bucket;
        }
        if (full_at < earliest || its_owner == 0) {
            earliest = full_at;
            *vacant = bucket;
            *owner = its_owner;
        }
    }
    return NULL;
}

/* A new name takes a bucket without an owner, else the fullest near by, which mostly is full and as
   good as new.  If not, the name starts with fewer tokens: they may be lost, never gained. */
static bucket_t *bucket_take(buckets_t buckets, unsigned long long name)
{
    bucket_t *bucket, *vacant;
    unsigned long long owner;

    while ((bucket = bucket_find(buckets, name, &vacant, &owner)) == NULL) {
        if (atomic_compare_exchange_strong(&vacant->owner, &owner, name)) {
            return vacant;
        }
    }
    return bucket;
}

void mdl_rate_limit_take(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name, int cost,
                         apr_time_t now, mdl_rate_state_t *state)
{
    apr_interval_time_t token = limit->rates[kind].token;
    apr_interval_time_t whole = token * limit->rates[kind].size;
    bucket_t *bucket = bucket_take(limit->buckets[kind], rate_limit_hash(limit, name));
    long long full_at = atomic_load(&bucket->full_at);
    apr_time_t then;

    if (limit->rates[kind].size == 0) {
        *state = (mdl_rate_state_t){.allowed = 1};
        return;
    }
    do {
        then = (full_at > now ? full_at : now) + cost * token;
        state->allowed = then <= now + whole;
    } while (state->allowed && cost > 0 &&
             !atomic_compare_exchange_weak(&bucket->full_at, &full_at, then));
    if (state->allowed) {
        state->full_in = then - now;
        state->more_in = state->full_in > 0 ? (state->full_in - 1) % token + 1 : 0;
    } else {
        mdl_metric_add(&mdl_metrics->rate_limited[kind], cost > 0);
        state->full_in = then - now - cost * token;
        state->more_in = then - now - whole;
    }
    state->size = limit->rates[kind].size;
    /* Another thread's now may be later than ours, and the bucket then emptier than empty. */
    state->remaining = state->full_in < whole ? (int)((whole - state->full_in) / token) : 0;
}

apr_interval_time_t mdl_rate_limit_reserve(mdl_rate_limit_t *limit, mdl_rate_kind_t kind,
                                           const char *name, apr_time_t now)
{
    apr_interval_time_t token = limit->rates[kind].token;
    apr_interval_time_t whole = token * limit->rates[kind].size;
    bucket_t *bucket;
    long long full_at;
    apr_time_t then;

    if (limit->rates[kind].size == 0) {
        return 0;
    }
    bucket = bucket_take(limit->buckets[kind], rate_limit_hash(limit, name));
    full_at = atomic_load(&bucket->full_at);
    do {
        then = (full_at > now ? full_at : now) + token;
    } while (!atomic_compare_exchange_weak(&bucket->full_at, &full_at, then));
    mdl_metric_add(&mdl_metrics->rate_limited[kind], then > now + whole);
    return then > now + whole ? then - now - whole : 0;
}

void mdl_rate_limit_charge_rows(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name,
                                unsigned rows, apr_time_t now)
{
    apr_interval_time_t cost = rows / MDL_RATE_ROWS * limit->rates[kind].token;
    apr_time_t most = now + 2 * limit->rates[kind].token * limit->rates[kind].size;
    bucket_t *bucket;
    long long full_at, then;

    if (cost == 0) {
        return;
    }
    bucket = bucket_take(limit->buckets[kind], rate_limit_hash(limit, name));
    full_at = atomic_load(&bucket->full_at);
    do {
        then = (full_at > now ? full_at : now) + cost;
        then = then < most ? then : most;
    } while (then > full_at && !atomic_compare_exchange_weak(&bucket->full_at, &full_at, then));
}

const char *mdl_rate_limit_network(const char *address, apr_pool_t *p)
{
    const char *text = mdl_address_text(address, p);

    return text != NULL ? apr_pstrndup(p, text, NETWORK_LENGTH) : address;
}

void mdl_rate_limit_return(mdl_rate_limit_t *limit, mdl_rate_kind_t kind, const char *name,
                           int cost)
{
    unsigned long long owner;
    bucket_t *vacant;
    bucket_t *bucket = bucket_find(limit->buckets[kind], rate_limit_hash(limit, name), &vacant,
                                   &owner);

    if (bucket != NULL) {
        atomic_fetch_sub(&bucket->full_at, cost * limit->rates[kind].token);
    }
}
