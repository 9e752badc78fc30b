#include "metering/settler.h"

#include <stdatomic.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include <apr_allocator.h>
#include <apr_strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "core/download/download.h"
#include "core/download/meter.h"
#include "core/shop/shop.h"
#include "db/reconnect.h"
#include "metering/owed.h"
#include "metering/takedown.h"
#include "metering/transfer.h"

#define TICK       apr_time_from_sec(1)
#define FIRST_NAP  apr_time_from_msec(5)
#define LAST_NAP   apr_time_from_msec(100)
#define GATHER     apr_time_from_msec(20) /* transfers that end within it are settled together */
#define END_WAIT_S 3
#define BATCH      100
#define MOVED_MAX  200
#define ID_LENGTH  22
#define SPARE      (128 * 1024) /* memory that a turn keeps for the next */

static struct {
    const mdl_service_t *service;
    char meter_id[ID_LENGTH + 1];
    pthread_mutex_t mutex;
    pthread_t thread;
    _Atomic int started;
    sem_t work;
    _Atomic int stopping;
    _Atomic int beats; /* how many requests need the heartbeat, besides transfers */
    _Atomic apr_time_t alive_until;
} settler = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Used only by the thread itself. */
typedef struct {
    apr_pool_t *pool;
    apr_pool_t *turn;
    mdl_reconnect_t *database;
    apr_time_t next_tick;
    apr_interval_time_t nap;
    int settled;  /* in the last turn */
    int has_more; /* more can be settled now */
} work_t;

const char *mdl_settler_meter_id(void)
{
    return settler.meter_id;
}

apr_time_t mdl_settler_due(apr_time_t now)
{
    return atomic_load(&settler.alive_until) - now > MDL_METER_TIME / 2 ? 0 : now + MDL_METER_TIME;
}

void mdl_settler_renewed(apr_time_t until)
{
    atomic_store(&settler.alive_until, until);
}

/* --- settling --- */

typedef struct {
    mdl_session_settle_t settle;
    mdl_db_due_t due;
} settle_t;

static apr_status_t session_settle_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    settle_t *settle = arg;
    apr_status_t rv;

    mdl_db_take_due(db);
    rv = mdl_session_settle(db, p, &settle->settle);
    settle->due = mdl_db_take_due(db);
    return rv;
}

static apr_status_t settler_settle(work_t *work, const apr_array_header_t *deliveries)
{
    const mdl_settings_t *settings = settler.service->settings;
    settle_t settle = {.settle = {.meter_id = settler.meter_id,
                                  .deliveries = deliveries,
                                  .idle = settings->session_idle,
                                  .default_download_limit = settings->download_limit}};
    apr_status_t rv = mdl_reconnect_settle(work->database, session_settle_effect, &settle,
                                           work->turn);

    if (rv == APR_SUCCESS) {
        mdl_service_wake(settler.service, settle.due);
    }
    return rv;
}

static void delivery_end(const mdl_session_delivery_t *delivery)
{
    if (delivery->bytes >= MDL_DOWNLOAD_LARGE_PART) {
        mdl_rate_limit_return(settler.service->rate_limit, MDL_RATE_PART, delivery->page_id, 1);
    }
    mdl_transfer_remove(delivery->transfer_id);
}

static int should_retry(apr_status_t rv)
{
    return mdl_db_unavailable(rv) || rv == MDL_DB_EFULL;
}

/* Settles one delivery; true if it is done with.  A delivery that the database refuses is dropped,
   so that it does not delay others. */
static int settler_settle_alone(work_t *work, const mdl_session_delivery_t *delivery)
{
    apr_array_header_t *one = apr_array_make(work->turn, 1, sizeof(mdl_session_delivery_t));
    apr_status_t rv;

    APR_ARRAY_PUSH(one, mdl_session_delivery_t) = *delivery;
    rv = settler_settle(work, one);
    if (should_retry(rv)) {
        return 0;
    }
    if (rv != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, rv, "MDL0411: what transfer %s delivered can't be written down",
                delivery->transfer_id);
    }
    return 1;
}

/* Settles transfers that have ended, BATCH at most; returns how many were settled. */
static int settle_ended(work_t *work, int *waiting)
{
    apr_array_header_t *deliveries = mdl_transfer_settled(BATCH, waiting, work->turn);
    apr_status_t rv = deliveries->nelts > 0 ? settler_settle(work, deliveries) : APR_SUCCESS;
    int settled = 0;

    for (int i = 0; i < deliveries->nelts && !should_retry(rv); i++) {
        const mdl_session_delivery_t *delivery = &APR_ARRAY_IDX(deliveries, i,
                                                                mdl_session_delivery_t);

        if (rv == APR_SUCCESS || settler_settle_alone(work, delivery)) {
            delivery_end(delivery);
            settled++;
        }
    }
    *waiting += deliveries->nelts - settled;
    return settled;
}

/* --- each second --- */

MDL_EFFECT(mdl_meter_renew, mdl_meter_tick_t *)

static void settler_renew(work_t *work)
{
    apr_time_t now = mdl_clock_monotonic();
    mdl_meter_tick_t tick = {.id = settler.meter_id, .alive_until = now + MDL_METER_TIME};

    tick.progress = mdl_transfer_moved(MOVED_MAX, work->turn);
    if ((tick.progress->nelts == 0 && mdl_settler_due(now) == 0) ||
        mdl_reconnect_settle(work->database, mdl_meter_renew_effect, &tick, work->turn) !=
            APR_SUCCESS) {
        return;
    }
    mdl_settler_renewed(tick.alive_until);
    mdl_transfer_written(tick.progress);
    for (int i = 0; i < tick.lost->nelts; i++) {
        const char *id = APR_ARRAY_IDX(tick.lost, i, const char *);

        if (mdl_transfer_cut(id)) {
            mdl_log(MDL_LOG_WARNING, 0,
                    "MDL0413: transfer %s is cut: this process stood still for so long that it was "
                    "taken for lost",
                    id);
        }
    }
}

MDL_EFFECT(mdl_meter_forbidden, mdl_meter_tick_t *)

static void settler_cut_forbidden(work_t *work)
{
    mdl_meter_tick_t tick = {.id = settler.meter_id, .secret = settler.service->secret};

    if (mdl_reconnect_read(work->database, mdl_meter_forbidden_effect, &tick, work->turn) !=
        APR_SUCCESS) {
        return;
    }
    for (int i = 0; i < tick.forbidden->nelts; i++) {
        const char *id = APR_ARRAY_IDX(tick.forbidden, i, const char *);

        if (mdl_transfer_cut(id)) {
            mdl_log(MDL_LOG_INFO, 0,
                    "MDL0412: transfer %s is cut: access to it has ended, or its link has sent "
                    "its size several times",
                    id);
        }
    }
}

MDL_EFFECT(mdl_shop_list_blocked, apr_array_header_t **)

static void settler_read_blocked(work_t *work)
{
    apr_time_t now = mdl_clock_monotonic();
    apr_array_header_t *ids;

    if (mdl_reconnect_read(work->database, mdl_shop_list_blocked_effect, &ids, work->turn) ==
        APR_SUCCESS) {
        mdl_takedown_set(ids, now);
    }
}

static void settler_tick(work_t *work, int has_transfers)
{
    if (has_transfers) {
        settler_cut_forbidden(work);
        mdl_transfer_reset_stalled();
    }
    if (has_transfers || atomic_load(&settler.beats) > 0) {
        settler_renew(work);
    }
    if (mdl_takedown_watched()) {
        settler_read_blocked(work);
    }
    mdl_owed_run(work->database, work->turn);
    apr_pool_clear(work->turn);
}

/* Whether something has to be done each second. */
static int settler_is_busy(int running, int ended)
{
    return running || ended || mdl_takedown_watched() || mdl_owed_any();
}

static void settler_turn(work_t *work)
{
    apr_time_t now = mdl_clock_monotonic();
    int running, ended, waiting, settled;

    mdl_transfer_any(&running, &ended);
    if (settler_is_busy(running, ended) && now >= work->next_tick) {
        work->next_tick = now + TICK;
        settler_tick(work, running || ended);
    }
    work->settled = 0;
    do {
        settled = settle_ended(work, &waiting);
        work->settled += settled;
        apr_pool_clear(work->turn);
    } while (settled == BATCH && mdl_clock_monotonic() < work->next_tick);
    work->has_more = settled == BATCH;
    if (waiting == 0) {
        work->nap = TICK;
    } else {
        work->nap = work->nap == TICK ? FIRST_NAP : work->nap * 2;
        work->nap = work->nap > LAST_NAP ? LAST_NAP : work->nap;
    }
}

static void settler_wait_for_work(const work_t *work)
{
    struct timespec until;
    apr_time_t when = mdl_clock_monotonic() + work->nap;
    int running, ended;

    if (work->settled > 0) {
        apr_sleep(GATHER);
    }
    mdl_transfer_any(&running, &ended);
    if (!settler_is_busy(running, ended)) {
        while (sem_wait(&settler.work) != 0 && errno == EINTR) {
        }
    } else {
        until.tv_sec = apr_time_sec(when);
        until.tv_nsec = apr_time_usec(when) * 1000;
        while (sem_clockwait(&settler.work, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {
        }
    }
    while (sem_trywait(&settler.work) == 0) {
    }
}

static void settler_finish(work_t *work)
{
    int waiting;

    mdl_transfer_end_all();
    while (settle_ended(work, &waiting) > 0) {
        apr_pool_clear(work->turn);
    }
    mdl_owed_run(work->database, work->turn);
}

static void *settler_main(void *unused)
{
    const mdl_settings_t *settings = settler.service->settings;
    const mdl_reconnect_config_t config = {
        .driver = settings->db_driver,
        .params = settings->db_params,
        .lost = "MDL0410: what was delivered can't be written down, and is kept until the database "
                "can be reached"};
    work_t work = {.nap = TICK};

    (void)unused;
    apr_pool_create_unmanaged_ex(&work.pool, NULL, NULL);
    apr_pool_tag(work.pool, "mdl_settler");
    work.database = mdl_reconnect_create(&config, work.pool);
    apr_pool_create_unmanaged_ex(&work.turn, NULL, NULL);
    apr_allocator_max_free_set(apr_pool_allocator_get(work.turn), SPARE);
    apr_pool_tag(work.turn, "mdl_settler_turn");
    while (!atomic_load(&settler.stopping)) {
        settler_turn(&work);
        if (!work.has_more && !atomic_load(&settler.stopping)) {
            settler_wait_for_work(&work);
        }
    }
    settler_finish(&work);
    apr_pool_destroy(work.turn);
    apr_pool_destroy(work.pool);
    return NULL;
}

int mdl_settler_start(void)
{
    sigset_t all, before;
    int error;

    if (settler.started) {
        return 1;
    }
    pthread_mutex_lock(&settler.mutex);
    if (!settler.started) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&settler.thread, NULL, settler_main, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        settler.started = error == 0;
        if (error != 0) {
            mdl_log(MDL_LOG_ERR, error,
                    "MDL0415: the thread that settles downloads can't be started");
        }
    }
    pthread_mutex_unlock(&settler.mutex);
    return settler.started;
}

void mdl_settler_watch(int beats)
{
    mdl_settler_start();
    mdl_takedown_watch();
    atomic_fetch_add(&settler.beats, beats);
    sem_post(&settler.work);
}

void mdl_settler_unwatch(int beats)
{
    atomic_fetch_sub(&settler.beats, beats);
    mdl_takedown_unwatch();
}

apr_status_t mdl_settler_beat(apr_status_t (*run)(void *baton, mdl_db_run_fn *how,
                                                  mdl_effect_fn *effect, void *arg),
                              void *baton)
{
    mdl_meter_tick_t tick = {.id = settler.meter_id,
                             .alive_until = mdl_settler_due(mdl_clock_monotonic()),
                             .progress = &(const apr_array_header_t){0}};
    apr_status_t rv = tick.alive_until != 0
                          ? run(baton, mdl_db_write, mdl_meter_renew_effect, &tick)
                          : APR_SUCCESS;

    if (rv == APR_SUCCESS && tick.alive_until != 0) {
        mdl_settler_renewed(tick.alive_until);
    }
    return rv;
}

void mdl_settler_owe(mdl_effect_fn *effect, void *arg, apr_pool_t *pool)
{
    mdl_owed_add(effect, arg, pool);
    mdl_settler_start();
    sem_post(&settler.work);
}

/* Under prefork, this and settler_join run in a signal handler, so they only post and wait. */
void mdl_settler_stop(void)
{
    if (settler.started) {
        atomic_store(&settler.stopping, 1);
        sem_post(&settler.work);
    }
}

static apr_status_t settler_join(void *unused)
{
    struct timespec deadline;

    (void)unused;
    if (settler.started) {
        mdl_settler_stop();
        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += END_WAIT_S;
        pthread_clockjoin_np(settler.thread, NULL, CLOCK_MONOTONIC, &deadline);
        settler.started = 0;
    }
    return APR_SUCCESS;
}

static void settler_wake(void)
{
    sem_post(&settler.work);
}

void mdl_settler_init(apr_pool_t *p, const mdl_service_t *service)
{
    settler.service = service;
    apr_cpystrn(settler.meter_id, mdl_random_base62(ID_LENGTH, p), sizeof settler.meter_id);
    sem_init(&settler.work, 0, 0);
    mdl_transfer_on_change(settler_wake);
    apr_pool_pre_cleanup_register(p, NULL, settler_join);
}
