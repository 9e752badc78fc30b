/* A key's token bucket: how many requests are allowed, when tokens are refilled, and that threads
   and processes together never get too many. */
#include "core/shop/rate_limit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "t/unit/tap.h"

#define ID      "0123456789abcdef"
#define NOW     APR_TIME_C(5000000000)
#define SECOND  APR_USEC_PER_SEC
#define BUCKETS 65536

static mdl_settings_t *settings_of(int burst, int refill, apr_pool_t *p)
{
    mdl_settings_t *settings = mdl_settings_create(p);

    settings->rate_burst = burst;
    settings->rate_refill = refill;
    return settings;
}

static mdl_rate_limit_t *limit_of(int burst, int refill, apr_pool_t *p)
{
    mdl_rate_limit_t *limit;

    if (mdl_rate_limit_create(&limit, settings_of(burst, refill, p), p) != APR_SUCCESS) {
        printf("Bail out! no shared memory\n");
        exit(2);
    }
    return limit;
}

static mdl_rate_state_t state_of(mdl_rate_limit_t *limit, const char *id, int cost, apr_time_t now)
{
    mdl_rate_state_t state;

    mdl_rate_limit_take(limit, MDL_RATE_KEY, id, cost, now, &state);
    return state;
}

static int take(mdl_rate_limit_t *limit, int cost, apr_time_t now)
{
    return state_of(limit, ID, cost, now).allowed;
}

/* The number of requests of a cost allowed at one moment. */
static int drain(mdl_rate_limit_t *limit, const char *id, int cost, apr_time_t now)
{
    int n = 0;

    while (n < 100000 && state_of(limit, id, cost, now).allowed) {
        n++;
    }
    return n;
}

static void test_rows(apr_pool_t *p)
{
    mdl_rate_limit_t *limit = limit_of(60, 60, p);

    mdl_rate_limit_charge_rows(limit, MDL_RATE_KEY, ID, MDL_RATE_ROWS - 1, NOW);
    is_int(state_of(limit, ID, 0, NOW).remaining, 60, "fewer than 1,000 rows cost nothing");
    mdl_rate_limit_charge_rows(limit, MDL_RATE_KEY, ID, 5 * MDL_RATE_ROWS + 10, NOW);
    is_int(state_of(limit, ID, 0, NOW).remaining, 55, "5,000 rows cost five tokens");
    is_int(drain(limit, ID, 1, NOW), 55, "which are missing");
    mdl_rate_limit_charge_rows(limit, MDL_RATE_KEY, ID, 5 * MDL_RATE_ROWS, NOW);
    is_int(state_of(limit, ID, 1, NOW).more_in, 6 * SECOND, "an empty bucket owes them");
    for (int i = 0; i < 100; i++) {
        mdl_rate_limit_charge_rows(limit, MDL_RATE_KEY, ID, 5 * MDL_RATE_ROWS, NOW);
    }
    is_int(state_of(limit, ID, 1, NOW).more_in, 61 * SECOND, "but no more than it can hold");
    is_int(drain(limit, ID, 1, NOW + 120 * SECOND), 60, "and is full again after that");
}

static void test_burst(apr_pool_t *p)
{
    mdl_rate_limit_t *limit = limit_of(60, 60, p);
    mdl_rate_state_t state = state_of(limit, ID, 0, NOW);

    ok(state.allowed && state.remaining == 60 && state.full_in == 0 && state.more_in == 0,
       "a new key has a full bucket");
    is_int(drain(limit, ID, 1, NOW), 60, "60 tokens allow 60 reads");
    is_int(drain(limit_of(60, 60, p), ID, 2, NOW), 30, "60 tokens allow 30 writes");
    is_int(drain(limit_of(61, 60, p), ID, 2, NOW), 30, "61 tokens allow 30 writes");
    is_int(drain(limit_of(1, 1, p), ID, 1, NOW), 1, "the smallest bucket allows one request");
    is_int(drain(limit_of(60, 60, p), ID, 60, NOW), 1,
           "a bucket whose size is the cost of a request allows one");

    state = state_of(limit, ID, 1, NOW);
    ok(!state.allowed && state.remaining == 0, "an empty bucket allows no request");
    is_int(state.full_in, 60 * SECOND, "an empty bucket is full in a minute");
    is_int(state.more_in, SECOND, "the next read is allowed in 1 s");
    is_int(state_of(limit, ID, 2, NOW).more_in, 2 * SECOND, "the next write is allowed in 2 s");
    is_int(state_of(limit, ID, 1, NOW).more_in, SECOND, "a refused request takes no token");
    is_int(drain(limit, "fedcba9876543210", 1, NOW), 60, "another key has a separate bucket");
}

static void test_refill(apr_pool_t *p)
{
    mdl_rate_limit_t *limit = limit_of(60, 60, p);
    mdl_rate_state_t state = state_of(limit, ID, 1, NOW);

    is_int(state.remaining, 59, "a read leaves 59 of 60");
    is_int(state.full_in, SECOND, "the bucket is full again in 1 s");
    is_int(state.more_in, SECOND, "the next token comes in 1 s");
    state = state_of(limit, ID, 2, NOW + SECOND / 4);
    is_int(state.remaining, 57, "a part of a token does not count");
    is_int(state.full_in, 2 * SECOND + 3 * SECOND / 4,
           "a part of a token shortens the time until the bucket is full");
    is_int(state.more_in, 3 * SECOND / 4,
           "a part of a token shortens the time until the next token");
    is_int(state_of(limit, ID, 0, NOW + SECOND).remaining, 58,
           "a token counts when it is complete");
    state = state_of(limit, ID, 0, NOW + 3 * SECOND);
    ok(state.remaining == 60 && state.full_in == 0 && state.more_in == 0,
       "a bucket is full after some time");
    is_int(drain(limit, ID, 1, NOW + 10000 * SECOND), 60,
           "a bucket never has more tokens than its size");
    is_int(take(limit, 1, NOW + 10001 * SECOND - 1), 0,
           "no token comes back before a second has passed");
    is_int(take(limit, 1, NOW + 10001 * SECOND), 1, "a token comes back after a second");
    is_int(take(limit, 1, NOW + 10001 * SECOND), 0, "only one token comes back after a second");
    is_int(drain(limit, ID, 1, NOW + 10011 * SECOND), 10, "ten tokens come back in ten seconds");

    limit = limit_of(10, 1, p);
    drain(limit, ID, 1, NOW);
    is_int(state_of(limit, ID, 1, NOW + SECOND).more_in, 59 * SECOND,
           "with one token a minute the wait is exact to the microsecond");
    limit = limit_of(1000000, 1000000, p);
    state = state_of(limit, ID, 1000, NOW);
    is_int(state.remaining, 999000, "the largest bucket counts its tokens correctly");
    limit = limit_of(1000000, 1, p);
    state = state_of(limit, ID, 1000, NOW);
    is_int(state.full_in, APR_INT64_C(60000) * SECOND,
           "the slowest refill of the largest bucket is computed correctly");
}

static void test_shop(apr_pool_t *p)
{
    mdl_rate_limit_t *limit = limit_of(60, 60, p);
    mdl_rate_state_t state;

    for (int i = 0; i < 180; i++) {
        mdl_rate_limit_take(limit, MDL_RATE_SHOP, ID, 1, NOW, &state);
    }
    ok(state.allowed && state.remaining == 0, "a shop has three times a key's tokens");
    is_int(state.size, 180, "which is the size of its bucket");
    mdl_rate_limit_take(limit, MDL_RATE_SHOP, ID, 1, NOW + SECOND, &state);
    ok(state.allowed && state.remaining == 2, "three come back in a second");
    is_int(drain(limit, ID, 1, NOW), 60, "a key of the same name has its own");
}

static void test_reserve(apr_pool_t *p)
{
    mdl_settings_t *settings = settings_of(60, 60, p);
    mdl_rate_limit_t *limit;
    int at_once = 0;

    settings->mail_rate = 360;
    mdl_rate_limit_create(&limit, settings, p);
    while (mdl_rate_limit_reserve(limit, MDL_RATE_MAIL, "1", NOW) == 0) {
        at_once++;
    }
    is_int(at_once, 360, "an hour's emails leave at once");
    is_int(mdl_rate_limit_reserve(limit, MDL_RATE_MAIL, "1", NOW), 20 * SECOND,
           "each further one gets a turn of its own");
    is_int(mdl_rate_limit_reserve(limit, MDL_RATE_MAIL, "1", NOW + 15 * SECOND), 15 * SECOND,
           "behind those that wait already");
    is_int(mdl_rate_limit_reserve(limit, MDL_RATE_MAIL, "2", NOW), 0, "another shop's don't wait");
    mdl_rate_limit_create(&limit, settings, p);
    mdl_rate_limit_set_mail(limit, 120);
    for (at_once = 0; mdl_rate_limit_reserve(limit, MDL_RATE_MAIL, "1", NOW) == 0;) {
        at_once++;
    }
    is_int(at_once, 120, "with a third of the rate a third leaves at once");
    mdl_rate_limit_set_mail(limit, 360);
    is_int(mdl_rate_limit_reserve(limit, MDL_RATE_MAIL, "1", NOW + 3600 * SECOND), 0,
           "with the whole rate again the bucket refills");
    settings->mail_rate = 0;
    mdl_rate_limit_create(&limit, settings, p);
    is_int(mdl_rate_limit_reserve(limit, MDL_RATE_MAIL, "1", NOW), 0, "0: there is no limit");
}

static void test_return(apr_pool_t *p)
{
    mdl_rate_limit_t *limit = limit_of(60, 60, p);

    drain(limit, ID, 1, NOW);
    mdl_rate_limit_return(limit, MDL_RATE_KEY, ID, 2);
    is_int(drain(limit, ID, 1, NOW), 2, "tokens that are put back can be taken again");
    mdl_rate_limit_return(limit, MDL_RATE_KEY, ID, 2);
    is_int(drain(limit, ID, 1, NOW + 100 * SECOND), 60, "and never make more than a full bucket");
    mdl_rate_limit_return(limit, MDL_RATE_KEY, "fedcba9876543210", 2);
    is_int(drain(limit, "fedcba9876543210", 1, NOW), 60, "nor does a bucket that nobody has");
}

/* A thread may take its tokens later than one that read the clock after it. */
static void test_earlier(apr_pool_t *p)
{
    mdl_rate_limit_t *limit = limit_of(60, 1000000, p);
    mdl_rate_state_t state;

    drain(limit, ID, 1, NOW);
    state = state_of(limit, ID, 1, NOW - 20000);
    ok(!state.allowed && state.remaining == 0,
       "a request with an earlier time gets no token, and no negative number is left");
    is_int(state.more_in, 20060, "its wait is longer by the difference");
    is_int(take(limit, 1, NOW), 0, "an earlier time gives no token back");
    is_int(take(limit, 1, NOW + 60), 1, "an earlier time loses no token");
}

static void test_full_table(apr_pool_t *p)
{
    mdl_rate_limit_t *limit = limit_of(2, 1, p);
    apr_pool_t *ptemp;
    int allowed = 0, last = 0;

    apr_pool_create(&ptemp, p);
    for (int i = 0; i < 2 * BUCKETS; i++) {
        const char *id = apr_psprintf(ptemp, "key%013d", i);

        allowed += state_of(limit, id, 1, NOW).allowed;
        if (i % 1000 == 0) {
            apr_pool_clear(ptemp);
        }
    }
    ok(allowed > BUCKETS, "more keys than there are buckets are served");
    ok(allowed <= 2 * BUCKETS, "they get no more tokens than there are");
    for (int i = 0; i < 2 * BUCKETS; i += 64) {
        last += drain(limit, apr_psprintf(ptemp, "key%013d", i), 1, NOW);
    }
    ok(last <= 2 * BUCKETS - allowed, "keys that share a bucket get no token twice");
    is_int(state_of(limit, "key0000000000000", 1, NOW + 120 * SECOND).allowed, 1,
           "keys that share a bucket get tokens when it is refilled");
    is_int(drain(limit, "new", 1, NOW + 240 * SECOND), 2, "a new key takes a full bucket");
    is_int(drain(limit, "new", 1, NOW + 240 * SECOND), 0, "and keeps it");
}

/* --- concurrent requests --- */

#define THREADS   8
#define PROCESSES 4
#define TRIES     200000

typedef struct {
    mdl_rate_limit_t *limit;
    int moving;
    int cost;
    int allowed;
} work_t;

static void *work(void *arg)
{
    work_t *mine = arg;

    for (int i = 0; i < TRIES; i++) {
        apr_time_t now = mine->moving ? mdl_clock_monotonic() : NOW;

        mine->allowed += state_of(mine->limit, ID, mine->cost, now).allowed;
    }
    return NULL;
}

/* The number of tokens that several threads take. */
static int run_threads(mdl_rate_limit_t *limit, int moving)
{
    pthread_t threads[THREADS];
    work_t works[THREADS];
    int taken = 0;

    for (int i = 0; i < THREADS; i++) {
        works[i] = (work_t){.limit = limit, .moving = moving, .cost = 1 + i % 2};
        pthread_create(&threads[i], NULL, work, &works[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        taken += works[i].allowed * works[i].cost;
    }
    return taken;
}

/* The number of tokens that the threads of several processes take. */
static int run_processes(mdl_rate_limit_t *limit, int moving)
{
    int ends[2], taken = 0, one;

    fflush(stdout);
    if (pipe(ends) != 0) {
        return -1;
    }
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            one = run_threads(limit, moving);
            _exit(write(ends[1], &one, sizeof one) != sizeof one);
        }
    }
    close(ends[1]);
    while (read(ends[0], &one, sizeof one) == sizeof one) {
        taken += one;
    }
    close(ends[0]);
    while (wait(NULL) > 0) {
    }
    return taken;
}

static void test_many(apr_pool_t *p)
{
    mdl_rate_limit_t *limit;
    apr_time_t began;
    int taken, most;

    is_int(run_threads(limit_of(400001, 1, p), 0), 400001,
           "many threads together take each token once");
    is_int(run_processes(limit_of(1000001, 1, p), 0), 1000001,
           "the threads of many processes together take each token once");

    /* 1,000 tokens a second are refilled meanwhile. */
    limit = limit_of(500, 60000, p);
    began = mdl_clock_monotonic();
    taken = run_processes(limit, 1);
    most = 500 + (int)((mdl_clock_monotonic() - began) / 1000);
    printf("# %d tokens taken, %d at most\n", taken, most);
    ok(taken >= 500 && taken <= most, "no request too many is allowed while tokens are refilled");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_burst(p);
    test_rows(p);
    test_refill(p);
    test_shop(p);
    test_reserve(p);
    test_return(p);
    test_earlier(p);
    test_full_table(p);
    test_many(p);
    return tap_end(p);
}
