#include "worker/loop.h"

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/download/session_settle.h"
#include "core/shop/secret.h"
#include "core/shop/webhook_delivery.h"
#include "worker/alerts.h"
#include "worker/claim.h"
#include "worker/cleanup.h"
#include "worker/maintenance.h"
#include "worker/publish.h"
#include "worker/settle.h"

#define TICK     apr_time_from_sec(1)
#define STEP     apr_time_from_sec(1) /* a smaller difference is no clock step */
#define SET_BACK apr_time_from_sec(60)
#define FINISH   apr_time_from_msec(2700) /* httpd kills 3 s after SIGTERM */
#define LOOK     100 /* milliseconds, whether a postponed task's time has come */

typedef struct {
    mdl_worker_t *worker;
    mdl_maintenance_t *maintenance;
    mdl_alerts_t *alerts; /* NULL: none */
    int inherited;        /* mdl_claim_inherit has succeeded */
    int connections;      /* to the database, as last seen; 0 while it is unreachable */
    apr_time_t next_poll; /* by mdl_clock_monotonic, like all deadlines of the loop */
    apr_time_t next_tick;
    apr_interval_time_t clock; /* how far the wall clock is ahead of mdl_clock_monotonic */
    apr_time_t set_back_from;  /* since when the database may have times of a clock since set back;
                                  for a minute */
    apr_time_t set_back_at;    /* when to correct them next */
} loop_t;

/* --- wait --- */

static int milliseconds_until(apr_time_t when)
{
    apr_interval_time_t left = when - mdl_clock_monotonic();

    return left <= 0 ? 0 : (int)((left + 999) / 1000);
}

/* When the next turn is due if no event comes before. */
static apr_time_t loop_next_turn(const loop_t *loop)
{
    const mdl_worker_t *worker = loop->worker;
    apr_time_t until = loop->next_poll;

    if (loop->connections != 0 && mdl_maintenance_due(loop->maintenance) < until) {
        until = mdl_maintenance_due(loop->maintenance);
    }
    if (worker->tasks != NULL && loop->next_tick < until) {
        until = loop->next_tick;
    }
    if (mdl_publish_due(worker) < until) {
        until = mdl_publish_due(worker);
    }
    for (mdl_job_lane_t i = 0; i < MDL_LANES; i++) {
        if (mdl_worker_claims_at(worker, i) < until) {
            until = mdl_worker_claims_at(worker, i);
        }
    }
    return worker->look_cancelled && loop->connections != 0 ? 0 : until;
}

/* Waits for a job, a result or the time of the next turn; true when asked to stop. */
static int loop_wait(loop_t *loop, int stop_fd)
{
    mdl_worker_t *worker = loop->worker;
    struct pollfd fds[] = {{.fd = stop_fd, .events = POLLIN},
                           {.fd = worker->service->wake_fd, .events = POLLIN},
                           {.fd = mdl_queue_fd(worker->done), .events = POLLIN}};
    apr_uint64_t count;

    poll(fds, 3, milliseconds_until(loop_next_turn(loop)));
    if (fds[1].revents != 0 && read(worker->service->wake_fd, &count, sizeof count) > 0) {
        worker->look |= count >= MDL_WAKE_JOB;
        worker->events |= count % MDL_WAKE_JOB != 0;
    }
    return fds[0].revents != 0;
}

/* --- a turn --- */

/* The database has wall-clock times: when the clock is set back by an hour, a wait of a second must
   not become an hour.  For a while other processes may still write times of the old clock. */
static void loop_expect_set_back(loop_t *loop)
{
    loop->set_back_from = loop->set_back_at = mdl_clock_monotonic();
    loop->next_poll = 0;
}

/* After an outage, renews leases before claiming: our own jobs, whose leases have expired, would be
   claimed and done again. */
static void loop_connect(loop_t *loop)
{
    int connections = mdl_reconnect_connect(loop->worker->database);

    if (connections != 0 && connections != loop->connections) {
        loop->next_tick = 0;
        loop_expect_set_back(loop); /* the clock may have been set during the outage */
        mdl_worker_look_anew(loop->worker);
    }
    loop->connections = connections;
}

static void loop_look_at_clock(loop_t *loop)
{
    apr_interval_time_t clock = apr_time_now() - mdl_clock_monotonic();
    apr_interval_time_t by = clock - loop->clock;

    loop->clock = clock;
    if (by < STEP && by > -STEP) {
        return;
    }
    mdl_log(MDL_LOG_NOTICE, 0, "MDL0347: the clock was set %s by %" APR_INT64_T_FMT " seconds",
            by > 0 ? "forward" : "back", apr_time_sec(by > 0 ? by : -by));
    mdl_maintenance_rest(loop->maintenance);
    if (by < 0) {
        loop_expect_set_back(loop);
    }
}

static apr_status_t set_back_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    apr_status_t rv = mdl_job_set_back(db, p);

    (void)arg;
    if (rv == APR_SUCCESS) {
        rv = mdl_session_set_back(db, p);
    }
    return rv == APR_SUCCESS ? mdl_webhook_set_back(db, p) : rv;
}

static void loop_poll(loop_t *loop, apr_time_t now)
{
    mdl_worker_t *worker = loop->worker;

    loop->next_poll = now + worker->service->settings->poll_interval;
    if (now >= loop->set_back_at && now < loop->set_back_from + SET_BACK) {
        mdl_worker_write(worker, set_back_effect, NULL);
        /* Less and less often, because it reads all waiting jobs. */
        loop->set_back_at = now + (now - loop->set_back_from);
    }
    mdl_worker_look_anew(worker);
    mdl_publish_look(worker);
    mdl_claim_take_over(worker);
}

/* Nothing else is done until this succeeds. */
static int loop_inherit(loop_t *loop)
{
    loop->inherited = mdl_claim_inherit(loop->worker) == APR_SUCCESS;
    if (!loop->inherited) {
        loop->connections = 0;
        loop->next_poll = mdl_clock_monotonic() + TICK;
        loop->worker->events = 0; /* the following poll looks for them */
        apr_pool_clear(loop->worker->turn);
    }
    return loop->inherited;
}

static void loop_turn(loop_t *loop)
{
    mdl_worker_t *worker = loop->worker;
    apr_time_t now, again_at;

    loop_connect(loop);
    loop_look_at_clock(loop);
    if (!loop->inherited && !loop_inherit(loop)) {
        return;
    }
    now = mdl_clock_monotonic(); /* after both, because either may make a poll due */
    mdl_worker_take_back(worker);
    if (now >= loop->next_poll) {
        loop_poll(loop, now);
    }
    if (now >= loop->next_tick) {
        loop->next_tick = now + TICK;
        mdl_worker_compare(worker);
        mdl_claim_renew(worker);
        mdl_claim_give_back_blocked(worker);
    }
    mdl_settle_ended(worker);
    if (worker->look && (again_at = mdl_claim_look(worker)) != 0) {
        loop->next_poll = again_at;
    }
    if (mdl_publish_due(worker) <= now) {
        mdl_publish_events(worker);
    }
    if (worker->look_cancelled) {
        mdl_cleanup_cancelled(worker);
    }
    for (mdl_job_lane_t i = 0; i < MDL_LANES; i++) {
        if (mdl_worker_claims_at(worker, i) <= now) {
            mdl_claim_lane(worker, i);
        }
    }
    mdl_settle_ended(worker); /* tasks that needed no work */
    mdl_maintenance_run(loop->maintenance, loop->connections, worker->turn);
    mdl_worker_share(worker, mdl_maintenance_live_nodes(loop->maintenance));
    apr_pool_clear(worker->turn);
}

static int any_is_at(const mdl_worker_t *worker, mdl_task_place_t place)
{
    const mdl_task_t *task = worker->tasks;

    while (task != NULL && task->place != place) {
        task = task->peer;
    }
    return task != NULL;
}

/* Settles tasks as soon as they come back: if a sent email waited for the slowest server, it might
   not be recorded and be sent again.  So it might if its row is locked. */
static void loop_settle_rest(mdl_worker_t *worker)
{
    const apr_time_t until = mdl_clock_monotonic() + FINISH;
    struct pollfd done = {.fd = mdl_queue_fd(worker->done), .events = POLLIN};
    int postponed, rest;

    worker->postponed_until = 0;
    for (;;) {
        mdl_worker_take_back(worker);
        mdl_settle_ended(worker);
        postponed = any_is_at(worker, MDL_TASK_POSTPONED);
        rest = milliseconds_until(until);
        if (rest == 0 || !(postponed || any_is_at(worker, MDL_TASK_IN_LANE))) {
            return;
        }
        poll(&done, 1, postponed && rest > LOOK ? LOOK : rest);
    }
}

/* Tasks still in a lane when time is up are left to the successor, as after a kill. */
static void loop_finish(loop_t *loop)
{
    mdl_worker_t *worker = loop->worker;

    mdl_begun_clear(worker->service->begun); /* a requested stop must not count as a job's
                                                interruption */
    mdl_lanes_stop(worker->lanes);
    mdl_alerts_stop(loop->alerts);
    loop_settle_rest(worker);
    mdl_cleanup_cancelled(worker);
    mdl_maintenance_finish(loop->maintenance, worker->turn);
    mdl_reconnect_close(worker->database);
    mdl_alerts_wait(loop->alerts);
    if (!any_is_at(worker, MDL_TASK_IN_LANE)) {
        mdl_lanes_join(worker->lanes);
    }
}

static apr_status_t secret_note_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const mdl_service_t *service = arg;

    return mdl_secret_note(db, service->secret, p);
}

apr_status_t mdl_loop_run(const mdl_service_t *service, const char *owner, int stop_fd,
                          apr_pool_t *p)
{
    loop_t loop = {.clock = apr_time_now() - mdl_clock_monotonic()};
    apr_status_t rv = mdl_worker_create(&loop.worker, service, owner, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    loop.maintenance = mdl_maintenance_create(service, loop.worker->storage, loop.worker->database,
                                              p);
    mdl_worker_settle(loop.worker, secret_note_effect, (void *)service);
    if ((rv = mdl_alerts_start(&loop.alerts, service, p)) != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, rv, "MDL0393: can't start the thread of the alerts; nobody is told");
    }
    do {
        loop_turn(&loop);
    } while (!loop_wait(&loop, stop_fd));
    loop_finish(&loop);
    return APR_SUCCESS;
}
