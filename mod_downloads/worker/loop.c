#include "worker/loop.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <apr_network_io.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/log.h"
#include "db/reconnect.h"
#include "worker/cleanup.h"
#include "worker/maintenance.h"
#include "worker/outcome.h"
#include "worker/runner.h"

#define TICK        apr_time_from_sec(1)
#define MINUTE      apr_time_from_sec(60)
#define MAX_RUNNERS 2

/* Slots of 0: DownloadsIngestConcurrency. */
static const struct {
    const char *name;
    mdl_runner_kind_t handler;
    int runners;
    int slots;
} lanes[] = {
    {MDL_LANE_SMALL, MDL_RUNNER_TRANSFER, 1, 16},
    {MDL_LANE_BULK, MDL_RUNNER_TRANSFER, MAX_RUNNERS, 0},
    {MDL_LANE_HASH, MDL_RUNNER_HASH, 1, 4},
    {MDL_LANE_MAIL, MDL_RUNNER_MAIL, 1, 8},
    /* Each may wait for a storefront that is slow, and costs no more than a socket. */
    {MDL_LANE_LOOKUP, MDL_RUNNER_TRANSFER, 1, 64},
};
#define LANES (int)(sizeof lanes / sizeof *lanes)

typedef struct {
    int slots;
    int runner_count;
    mdl_runner_t *runners[MAX_RUNNERS];
    int busy;
    int look;          /* there may be jobs to claim */
    apr_time_t due_at; /* of the next job that is not due yet; 0: none */
} lane_t;

typedef struct {
    const mdl_service_t *service;
    apr_pool_t *pool;
    apr_pool_t *turn; /* cleared after each turn of the loop */
    mdl_storage_t *storage;
    const char *owner;
    const char *boot_id;
    mdl_reconnect_t *database;
    mdl_maintenance_t *maintenance;
    int connections; /* of database, as last seen; 0 while it is away */
    lane_t lanes[LANES];
    int look_cancelled; /* there may be cancelled jobs to see to */
    mdl_queue_t *done;
    mdl_task_t *active; /* in the lanes' threads */
    mdl_task_t *ended;  /* back, not yet written down */
    apr_time_t tick_at;
    apr_time_t next_poll;
    apr_time_t next_tick;
} worker_t;

static void look_everywhere(worker_t *worker)
{
    for (int i = 0; i < LANES; i++) {
        worker->lanes[i].look = 1;
    }
    worker->look_cancelled = 1;
}

static apr_status_t loop_write_effect(worker_t *worker, mdl_effect_fn *effect, void *arg)
{
    return mdl_reconnect_write(worker->database, effect, arg, worker->turn);
}

/* Claiming. */

static mdl_task_t *make_task(worker_t *worker, const mdl_job_t *job, int lane)
{
    apr_pool_t *pool;
    mdl_task_t *task;

    /* A pool with its own allocator, for it goes to another thread. */
    apr_pool_create_unmanaged_ex(&pool, NULL, NULL);
    apr_pool_tag(pool, "mdl_task");
    task = apr_pcalloc(pool, sizeof *task);
    task->pool = pool;
    task->job = mdl_job_copy(job, pool);
    atomic_store(&task->leased_until, job->due_at);
    task->job->due_at = apr_time_now(); /* given back, it is due at once */
    task->handler = mdl_handler_of(job);
    task->service = worker->service;
    task->storage = worker->storage;
    task->boot_id = worker->boot_id;
    task->lane = lane;
    task->reported = job->bytes_received;
    atomic_store(&task->received, job->bytes_received);
    atomic_store(&task->total, job->bytes_total);
    atomic_store(&task->validator, task->job->validator);
    return task;
}

static void end_task(worker_t *worker, mdl_task_t *task, mdl_outcome_t outcome)
{
    task->outcome = outcome;
    task->next = worker->ended;
    worker->ended = task;
}

static apr_status_t loop_prepare(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_task_t *task = arg;

    (void)p;
    return task->handler->prepare(db, task);
}

static mdl_runner_t *least_loaded(const lane_t *lane)
{
    mdl_runner_t *best = lane->runners[0];

    for (int i = 1; i < lane->runner_count; i++) {
        if (mdl_runner_load(lane->runners[i]) < mdl_runner_load(best)) {
            best = lane->runners[i];
        }
    }
    return best;
}

/* What keeps a claimed job from being worked on, as its outcome; APR_SUCCESS for nothing. */
static apr_status_t check_task(worker_t *worker, mdl_task_t *task)
{
    mdl_job_t *job = task->job;
    apr_status_t rv = APR_SUCCESS;

    if (task->handler == NULL) {
        /* of a newer release that works on the same database */
        job->due_at = apr_time_now() + MINUTE;
        task->outcome = MDL_TASK_RELEASED;
        return APR_EOF;
    }
    if (job->attempts > job->max_attempts) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0322: job %s ended the background process %d times; given up",
                job->id, job->max_attempts);
        job->error_code = "internal_error";
        job->error_message = "The job was interrupted too often.";
        task->outcome = MDL_TASK_FAILED;
        return APR_EOF;
    }
    if (task->handler->prepare != NULL) {
        rv = mdl_reconnect_read(worker->database, loop_prepare, task, worker->turn);
    }
    if (mdl_db_unavailable(rv)) {
        job->due_at = apr_time_now() + TICK;
        task->outcome = MDL_TASK_RELEASED;
    } else if (rv != APR_SUCCESS && rv != APR_EOF) {
        job->error_code = "internal_error";
        job->error_message = "The job could not be prepared.";
        task->outcome = MDL_TASK_RETRY;
    }
    return rv;
}

/* Has the task of a job, if there is one in the lanes' threads, broken off. */
static int loop_break_off(worker_t *worker, const char *id)
{
    mdl_task_t *task = worker->active;

    while (task != NULL && strcmp(task->job->id, id) != 0) {
        task = task->peer;
    }
    if (task == NULL) {
        return 0;
    }
    if (!atomic_exchange(&task->lost, 1)) {
        mdl_runner_wake(task->runner);
    }
    return 1;
}

static void begin_task(worker_t *worker, mdl_task_t *task)
{
    lane_t *lane = &worker->lanes[task->lane];

    lane->busy++;
    loop_break_off(worker, task->job->id); /* one that was cancelled and tried again at once */
    if (check_task(worker, task) != APR_SUCCESS) {
        end_task(worker, task, task->outcome);
        return;
    }
    task->peer = worker->active;
    worker->active = task;
    mdl_runner_put(least_loaded(lane), task);
}

typedef struct {
    mdl_job_claim_t claim;
    apr_time_t next_due;
} look_t;

static apr_status_t loop_claim(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    look_t *look = arg;
    apr_status_t rv = mdl_job_claim(db, p, &look->claim);

    look->next_due = 0;
    if (rv == APR_SUCCESS && look->claim.jobs->nelts < look->claim.limit) {
        rv = mdl_job_next_due(db, look->claim.lane, &look->next_due, p);
    }
    return rv;
}

static void claim_lane(worker_t *worker, int index)
{
    lane_t *lane = &worker->lanes[index];
    look_t look = {.claim = {.lane = lanes[index].name,
                             .owner = worker->owner,
                             .lease = worker->service->settings->lease_time,
                             .limit = lane->slots - lane->busy}};

    if (look.claim.limit <= 0) {
        return;
    }
    if (loop_write_effect(worker, loop_claim, &look) != APR_SUCCESS) {
        /* not at once again: the loop would turn without a pause until the database is well */
        lane->look = 0;
        lane->due_at = apr_time_now() + TICK;
        return;
    }
    lane->look = look.claim.jobs->nelts == look.claim.limit;
    lane->due_at = look.next_due;
    for (int i = 0; i < look.claim.jobs->nelts; i++) {
        begin_task(worker,
                   make_task(worker, APR_ARRAY_IDX(look.claim.jobs, i, mdl_job_t *), index));
    }
}

static void loop_forget(worker_t *worker, mdl_task_t *task)
{
    lane_t *lane = &worker->lanes[task->lane];

    /* A job that changed its lane, or gave a slot free, may be followed by another. */
    look_everywhere(worker);
    lane->busy--;
    apr_pool_destroy(task->pool);
}

static apr_status_t outcome_write_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_outcome_write(db, p, arg);
}

/* A result that the database refuses must not be tried for ever: the job fails without it. */
static void loop_settle_alone(worker_t *worker, mdl_task_t *task)
{
    apr_status_t rv = loop_write_effect(worker, outcome_write_effect, task);

    if (rv == APR_SUCCESS) {
        return;
    }
    if (rv == APR_EINCOMPLETE) {
        task->job->error_code = "internal_error";
        task->job->error_message = "The same bytes were being removed from storage.";
        task->outcome = MDL_TASK_RETRY;
        rv = loop_write_effect(worker, outcome_write_effect, task);
    } else if (rv == MDL_DB_EOTHER) {
        atomic_store(&task->validator, NULL);
        task->job->error_code = "internal_error";
        task->job->error_message = "The result of the job could not be stored.";
        task->outcome = MDL_TASK_FAILED;
        rv = loop_write_effect(worker, outcome_write_effect, task);
    }
    mdl_log(MDL_LOG_ERR, 0, "MDL0324: the result of job %s can't be written down; %s",
            task->job->id, rv == APR_SUCCESS ? "it has failed" : "it is done again later");
}

/* Writes a list of tasks down in one transaction; what the database can't take now is kept for the
   next turn, and meanwhile the leases may pass to others. */
static void settle_list(worker_t *worker, mdl_task_t *task)
{
    apr_status_t rv = loop_write_effect(worker, outcome_write_effect, task);
    int keep = mdl_db_unavailable(rv) || rv == MDL_DB_EFULL;
    mdl_task_t *next;

    for (; task != NULL; task = next) {
        next = task->next;
        if (keep) {
            end_task(worker, task, task->outcome);
            continue;
        }
        task->next = NULL;
        if (rv != APR_SUCCESS) {
            loop_settle_alone(worker, task);
        }
        loop_forget(worker, task);
    }
}

static void settle_ended(worker_t *worker)
{
    mdl_task_t *task = worker->ended;
    mdl_task_t *group = NULL;
    mdl_task_t *next;

    worker->ended = NULL;
    for (; task != NULL; task = next) {
        next = task->next;
        if (task->handler != NULL && task->handler->alone) {
            task->next = NULL;
            settle_list(worker, task);
        } else {
            task->next = group;
            group = task;
        }
    }
    if (group != NULL) {
        settle_list(worker, group);
    }
}

static void take_back(worker_t *worker)
{
    mdl_task_t *task = mdl_queue_take(worker->done);
    mdl_task_t *next;

    for (; task != NULL; task = next) {
        mdl_task_t **at = &worker->active;

        next = task->next;
        while (*at != task) {
            at = &(*at)->peer;
        }
        *at = task->peer;
        mdl_runner_took_back(task->runner);
        end_task(worker, task, task->outcome);
    }
}

/* Cancelled jobs. */

static apr_status_t cleanup_find_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_cleanup_find(db, p, arg);
}

static apr_status_t cleanup_run_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_cleanup_run(db, p, arg);
}

/* Breaks off what was cancelled; what nobody works on any more is cleaned up after. */
static void see_cancelled(worker_t *worker)
{
    mdl_cleanup_t cleanup = {.owner = worker->owner,
                             .overdue = apr_time_now() - worker->service->settings->lease_time,
                             .storage = worker->storage,
                             .jobs = NULL};
    int idle = 0, more;

    worker->look_cancelled = 0;
    if (mdl_reconnect_read(worker->database, cleanup_find_effect, &cleanup, worker->turn) !=
        APR_SUCCESS) {
        return;
    }
    more = cleanup.jobs->nelts == MDL_CLEANUP_BATCH;
    for (int i = 0; i < cleanup.jobs->nelts; i++) {
        mdl_job_t *job = APR_ARRAY_IDX(cleanup.jobs, i, mdl_job_t *);

        if (!loop_break_off(worker, job->id)) {
            APR_ARRAY_IDX(cleanup.jobs, idle++, mdl_job_t *) = job;
        }
    }
    cleanup.jobs->nelts = idle;
    /* What could not be done now is left to the next poll, or to the end of what was broken off. */
    if (idle > 0 && loop_write_effect(worker, cleanup_run_effect, &cleanup) == APR_SUCCESS) {
        worker->look_cancelled = more;
    }
}

/* Leases. */

static int wants_renewal(const mdl_task_t *task, apr_time_t now)
{
    apr_interval_time_t lease = task->service->settings->lease_time;

    return task->reported != atomic_load(&task->received) ||
           atomic_load(&task->leased_until) - now < lease - lease / 3;
}

/* An effect: what it finds is noted in the tasks once it is committed. */
static apr_status_t renew_all(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    worker_t *worker = arg;
    apr_interval_time_t lease = worker->service->settings->lease_time;

    for (mdl_task_t *task = worker->active; task != NULL; task = task->peer) {
        task->renewal = APR_EINCOMPLETE;
        if (!atomic_load(&task->lost) && wants_renewal(task, worker->tick_at)) {
            mdl_outcome_progress(task);
            task->renewal = mdl_job_renew(db, task->job, lease, p);
        }
        if (task->renewal != APR_SUCCESS && task->renewal != APR_ENOENT &&
            task->renewal != APR_EINCOMPLETE) {
            return task->renewal;
        }
    }
    return APR_SUCCESS;
}

static void renew_leases(worker_t *worker)
{
    worker->tick_at = apr_time_now();
    if (worker->active == NULL || loop_write_effect(worker, renew_all, worker) != APR_SUCCESS) {
        return;
    }
    for (mdl_task_t *task = worker->active; task != NULL; task = task->peer) {
        if (task->renewal == APR_SUCCESS) {
            task->reported = task->job->bytes_received;
            atomic_store(&task->leased_until,
                         worker->tick_at + worker->service->settings->lease_time);
        } else if (task->renewal == APR_ENOENT) {
            mdl_log(MDL_LOG_NOTICE, 0, "MDL0325: job %s: the lease is lost", task->job->id);
            atomic_store(&task->lost, 1);
            mdl_runner_wake(task->runner);
        }
    }
}

/* The loop. */

static int milliseconds_until(apr_time_t when)
{
    apr_interval_time_t left = when - apr_time_now();

    return left <= 0 ? 0 : (int)((left + 999) / 1000);
}

/* Waits for a job, a result or the time of the next chore; true when asked to stop. */
static int loop_wait_for_work(worker_t *worker, int stop_fd)
{
    struct pollfd fds[] = {{.fd = stop_fd, .events = POLLIN},
                           {.fd = worker->service->wake_fd, .events = POLLIN},
                           {.fd = mdl_queue_fd(worker->done), .events = POLLIN}};
    apr_time_t until = worker->next_poll;
    apr_uint64_t count;

    if (worker->connections != 0 && mdl_maintenance_due(worker->maintenance) < until) {
        until = mdl_maintenance_due(worker->maintenance);
    }
    if ((worker->active != NULL || worker->ended != NULL) && worker->next_tick < until) {
        until = worker->next_tick;
    }
    for (int i = 0; i < LANES; i++) {
        const lane_t *lane = &worker->lanes[i];

        if (lane->busy < lane->slots && lane->due_at != 0 && lane->due_at < until) {
            until = lane->due_at;
        }
        if (lane->look && lane->busy < lane->slots && worker->connections != 0) {
            until = 0;
        }
    }
    if (worker->look_cancelled && worker->connections != 0) {
        until = 0;
    }
    poll(fds, 3, milliseconds_until(until));
    if (fds[1].revents != 0 && read(worker->service->wake_fd, &count, sizeof count) > 0) {
        look_everywhere(worker);
    }
    return fds[0].revents != 0;
}

/* After an outage leases are renewed before anything is claimed: else our own jobs, whose leases
   have ended meanwhile, would be claimed and done anew. */
static void see_database(worker_t *worker)
{
    int connections = mdl_reconnect_connect(worker->database);

    if (connections != 0 && connections != worker->connections) {
        worker->next_tick = 0;
        look_everywhere(worker);
    }
    worker->connections = connections;
}

static void loop_turn(worker_t *worker)
{
    apr_time_t now = apr_time_now();

    see_database(worker);
    take_back(worker);
    if (now >= worker->next_poll) {
        worker->next_poll = now + worker->service->settings->poll_interval;
        look_everywhere(worker);
    }
    if (now >= worker->next_tick) {
        worker->next_tick = now + TICK;
        renew_leases(worker);
    }
    if (worker->ended != NULL) {
        settle_ended(worker);
    }
    if (worker->look_cancelled) {
        see_cancelled(worker);
    }
    for (int i = 0; i < LANES; i++) {
        lane_t *lane = &worker->lanes[i];

        if (lane->look || (lane->due_at != 0 && lane->due_at <= now)) {
            claim_lane(worker, i);
        }
    }
    mdl_maintenance_run(worker->maintenance, worker->connections, worker->turn);
    apr_pool_clear(worker->turn);
}

static void stop_runners(worker_t *worker)
{
    for (int i = 0; i < LANES; i++) {
        for (int j = 0; j < worker->lanes[i].runner_count; j++) {
            mdl_runner_stop(worker->lanes[i].runners[j]);
        }
    }
    for (int i = 0; i < LANES; i++) {
        for (int j = 0; j < worker->lanes[i].runner_count; j++) {
            mdl_runner_join(worker->lanes[i].runners[j]);
        }
    }
}

static void loop_finish(worker_t *worker)
{
    stop_runners(worker);
    take_back(worker);
    if (worker->ended != NULL) {
        settle_ended(worker);
    }
    see_cancelled(worker);
    mdl_maintenance_finish(worker->maintenance, worker->turn);
    mdl_reconnect_close(worker->database);
}

/* The parent could not migrate if the database was away at its start. */
static mdl_reconnect_t *database_create(const mdl_settings_t *settings, apr_pool_t *p)
{
    const mdl_reconnect_config_t config = {
        .driver = settings->db_driver,
        .params = settings->db_params,
        .migrate = settings->migrate,
        .lost = "MDL0320: the background process can't reach the database and goes on trying",
        .found = "MDL0321: the background process reached the database again"};

    return mdl_reconnect_create(&config, p);
}

static const char *read_boot_id(apr_pool_t *p)
{
    char id[64] = "unknown";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file != NULL) {
        if (fscanf(file, "%63s", id) != 1) {
            apr_cpystrn(id, "unknown", sizeof id);
        }
        fclose(file);
    }
    return apr_pstrdup(p, id);
}

static const char *owner_name(const mdl_settings_t *settings, apr_pool_t *p)
{
    char host[APRMAXHOSTLEN + 1] = "localhost";

    apr_gethostname(host, sizeof host, p);
    return apr_pstrcat(p, host, ":", settings->storage, NULL);
}

static apr_status_t start_lanes(worker_t *worker)
{
    for (int i = 0; i < LANES; i++) {
        lane_t *lane = &worker->lanes[i];

        lane->slots = lanes[i].slots != 0 ? lanes[i].slots
                                          : worker->service->settings->ingest_concurrency;
        lane->look = 1;
        for (int j = 0; j < lanes[i].runners; j++) {
            apr_status_t rv = mdl_runner_start(&lane->runners[j], lanes[i].handler, worker->service,
                                               worker->done, worker->pool);

            if (rv != APR_SUCCESS) {
                return rv;
            }
            lane->runner_count++;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t job_inherit_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_job_inherit(db, p, arg);
}

apr_status_t mdl_worker_run(const mdl_service_t *service, int stop_fd, apr_pool_t *p)
{
    worker_t *worker = apr_pcalloc(p, sizeof *worker);
    apr_status_t rv;

    worker->service = service;
    worker->pool = p;
    apr_pool_create(&worker->turn, p);
    apr_pool_tag(worker->turn, "mdl_worker_turn");
    worker->database = database_create(service->settings, p);
    worker->owner = owner_name(service->settings, p);
    worker->boot_id = read_boot_id(p);
    if ((rv = mdl_storage_open(&worker->storage, service->settings->storage, p)) != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, rv,
                "MDL0326: can't use the storage folder %s; the httpd user must own it",
                service->settings->storage);
        return rv;
    }
    worker->maintenance = mdl_maintenance_create(service, worker->storage, worker->database, p);
    if ((rv = mdl_http_global_init(p)) != APR_SUCCESS ||
        (rv = mdl_queue_create(&worker->done, p)) != APR_SUCCESS ||
        (rv = start_lanes(worker)) != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, rv, "MDL0327: can't start the background process's threads");
        stop_runners(worker);
        return rv;
    }
    loop_write_effect(worker, job_inherit_effect, (void *)worker->owner);
    do {
        loop_turn(worker);
    } while (!loop_wait_for_work(worker, stop_fd));
    loop_finish(worker);
    return APR_SUCCESS;
}
