#include "worker/claim.h"

#include <string.h>

#include <apr_time.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/ids.h"
#include "core/shop/shop.h"
#include "worker/handler.h"

#define SECOND  apr_time_from_sec(1)
#define MINUTE  apr_time_from_sec(60)
#define HELD    apr_time_from_msec(10)
#define BLOCKED apr_time_from_sec(10) /* until a blocked shop is checked again */
#define SHOPS   32 /* scanned by a claim, besides those whose jobs run or are oldest */

#define MAX_INTERRUPTIONS 3 /* deaths of the process in a row after which a job fails */

MDL_EFFECT(mdl_job_inherit, const mdl_job_inherit_t *)

apr_status_t mdl_claim_inherit(mdl_worker_t *worker)
{
    mdl_begun_t *begun = worker->service->begun;
    mdl_job_inherit_t inherit = {.worker = worker->owner, .begun = begun};
    apr_status_t rv = mdl_worker_settle(worker, mdl_job_inherit_effect, &inherit);

    if (rv == APR_SUCCESS) {
        mdl_begun_clear(begun);
    }
    return rv;
}

static mdl_task_t *task_create(mdl_worker_t *worker, const mdl_job_t *job, mdl_job_lane_t lane,
                               apr_time_t leased_until)
{
    apr_pool_t *pool;
    mdl_task_t *task;

    /* A pool without a parent, because another thread uses it. */
    apr_pool_create_unmanaged_ex(&pool, NULL, worker->allocator);
    apr_pool_tag(pool, "mdl_task");
    task = apr_pcalloc(pool, sizeof *task);
    task->pool = pool;
    task->job = mdl_job_copy(job, pool);
    atomic_store(&task->leased_until, leased_until);
    task->job->due_at = 0; /* if released, it is due at once */
    task->handler = mdl_handler_of(job);
    task->service = worker->service;
    task->storage = worker->storage;
    task->templates = worker->templates;
    task->boot_id = worker->boot_id;
    task->lane = lane;
    task->reported = job->bytes_received;
    task->mark = mdl_begun_add(worker->service->begun, job->id, job->lease_token,
                               job->bytes_received, pool);
    atomic_store(&task->total, job->bytes_total);
    atomic_store(&task->validator, task->job->validator);
    atomic_store(&task->written, task->job->written);
    task->peer = worker->tasks;
    return worker->tasks = task;
}

static apr_status_t handler_prepare_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_task_t *task = arg;

    (void)p;
    return task->handler->prepare(db, task);
}

/* Whether one more death of the process makes the job fail.  Only one such job runs at a time, so
   that a death shows which job caused it. */
static int job_is_suspect(const mdl_job_t *job)
{
    return job->interruptions == MAX_INTERRUPTIONS - 1;
}

static int suspects_at_work(const mdl_worker_t *worker)
{
    int count = 0;

    for (const mdl_task_t *task = worker->tasks; task != NULL; task = task->peer) {
        count += task->place == MDL_TASK_IN_LANE && job_is_suspect(task->job);
    }
    return count;
}

static void task_give_up(mdl_task_t *task)
{
    mdl_job_t *job = task->job;

    mdl_log(
        MDL_LOG_ERR, 0,
        "MDL0322: job %s is given up: the background process died too often during it; look for "
        "core files and the kernel's out-of-memory lines, then: downloadsctl job retry %s",
        job->id, job->id);
    job->error_code = "internal_error";
    job->error_message = "The job was interrupted too often.";
    task->outcome = MDL_TASK_FAILED;
}

/* APR_SUCCESS if the task can run; else it has its outcome.  rv is its handler's read's. */
static apr_status_t task_check(mdl_worker_t *worker, mdl_task_t *task, apr_status_t rv)
{
    mdl_job_t *job = task->job;

    if (rv == APR_SUCCESS && task->handler->prepare != NULL) {
        rv = mdl_reconnect_read(worker->database, handler_prepare_effect, task, worker->turn);
    }
    if (mdl_db_unavailable(rv)) {
        job->due_at = apr_time_now() + SECOND;
        task->outcome = MDL_TASK_RELEASED;
    } else if (rv != APR_SUCCESS && rv != APR_EOF) {
        job->error_code = "internal_error";
        job->error_message = "The job could not be prepared.";
        task->outcome = MDL_TASK_RETRY;
    }
    return rv;
}

typedef struct {
    const mdl_job_handler_t *handler;
    apr_array_header_t *tasks;
} reading_t;

static apr_status_t handler_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const reading_t *reading = arg;

    return reading->handler->read(db, p, reading->tasks);
}

/* Reads for the tasks of one lane.  All whose handler has a read function have the same handler. */
static apr_status_t tasks_read(mdl_worker_t *worker, const apr_array_header_t *tasks)
{
    reading_t reading = {.tasks = apr_array_make(worker->turn, tasks->nelts, sizeof(mdl_task_t *))};

    for (int i = 0; i < tasks->nelts; i++) {
        mdl_task_t *task = APR_ARRAY_IDX(tasks, i, mdl_task_t *);

        if (task->handler->read != NULL) {
            reading.handler = task->handler;
            APR_ARRAY_PUSH(reading.tasks, mdl_task_t *) = task;
        }
    }
    return reading.handler != NULL
               ? mdl_reconnect_read(worker->database, handler_read_effect, &reading, worker->turn)
               : APR_SUCCESS;
}

static void task_begin(mdl_worker_t *worker, mdl_task_t *task, apr_status_t rv)
{
    if (task_check(worker, task, rv) == APR_SUCCESS) {
        mdl_runner_put(mdl_worker_runner(worker, task->lane), task);
    } else {
        mdl_worker_end(task, task->outcome);
    }
}

static void jobs_begin(mdl_worker_t *worker, mdl_job_lane_t lane, const apr_array_header_t *jobs,
                       apr_time_t leased_until)
{
    apr_array_header_t *tasks = apr_array_make(worker->turn, jobs->nelts, sizeof(mdl_task_t *));
    apr_status_t rv;

    for (int i = 0; i < jobs->nelts; i++) {
        const mdl_job_t *job = APR_ARRAY_IDX(jobs, i, mdl_job_t *);
        mdl_task_t *task;

        /* A job that was cancelled and at once retried may still have its old task. */
        mdl_worker_break_off(worker, job->id);
        task = task_create(worker, job, lane, leased_until);
        if (job->interruptions < MAX_INTERRUPTIONS) {
            APR_ARRAY_PUSH(tasks, mdl_task_t *) = task;
        } else {
            task_give_up(task);
            mdl_worker_end(task, task->outcome);
        }
    }
    rv = tasks_read(worker, tasks);
    for (int i = 0; i < tasks->nelts; i++) {
        task_begin(worker, APR_ARRAY_IDX(tasks, i, mdl_task_t *), rv);
    }
}

/* --- claim --- */

/* Raises the low-water marks, but keeps them below the due jobs and a second behind the clock: a
   job's due time is that of its transaction, which commits later.  A full look finds later ones. */
static void marks_raise(mdl_worker_t *worker, apr_time_t looked_at)
{
    mdl_job_look_t *jobs = &worker->jobs;

    for (int i = 0; i < MDL_LANE_UNKNOWN; i++) {
        apr_time_t due_at = jobs->due_at[i];

        jobs->from[i] = looked_at - SECOND;
        if (due_at != 0 && due_at < jobs->from[i]) {
            jobs->from[i] = due_at;
        }
    }
}

/* Shortens the lanes' waits: new jobs may be of shops with free slots.  The rest of the wait
   gathers jobs that are queued one after another into one claim. */
static void lanes_resume(mdl_worker_t *worker)
{
    apr_time_t now = mdl_clock_monotonic();

    for (int i = 0; i < MDL_LANES; i++) {
        mdl_lane_t *lane = &worker->lanes[i];

        apr_time_t earliest = (lane->claimed_at < now ? lane->claimed_at : now) + HELD;

        lane->shops_seen = 0;
        if (lane->held_until > earliest) {
            lane->held_until = earliest;
        }
    }
}

MDL_EFFECT(mdl_job_look, mdl_job_look_t *)

apr_time_t mdl_claim_look(mdl_worker_t *worker)
{
    apr_time_t now = apr_time_now();

    worker->jobs.until = now + worker->service->settings->poll_interval;
    if (mdl_reconnect_read(worker->database, mdl_job_look_effect, &worker->jobs, worker->turn) !=
        APR_SUCCESS) {
        return mdl_clock_monotonic() + SECOND;
    }
    marks_raise(worker, now);
    lanes_resume(worker);
    worker->look = 0;
    worker->look_cancelled = worker->jobs.due_at[MDL_LANE_CLEANUP] != 0;
    return 0;
}

typedef struct {
    mdl_job_claim_t claim;
    const mdl_storage_t *storage;
    int suspects;                 /* suspect jobs that are running */
    apr_array_header_t *admitted; /* the jobs of claim.jobs that may run */
    apr_array_header_t *refused;  /* those that were released */
} claiming_t;

/* When to look at a claimed job again; 0 if it may run now. */
static apr_time_t job_wait_until(const mdl_job_t *job, int *suspects)
{
    apr_time_t now = apr_time_now();

    if (job->shop_blocked) {
        return now + BLOCKED; /* downloadsctl has already held its queued jobs */
    }
    if (mdl_handler_of(job) == NULL) {
        return now + MINUTE; /* of a newer release on the same database */
    }
    return job_is_suspect(job) && (*suspects)++ > 0 ? now + SECOND : 0;
}

static apr_status_t job_release_claimed(mdl_db_t *db, mdl_job_t *job, apr_pool_t *p)
{
    mdl_rows_t *held;
    apr_status_t rv = mdl_job_release(db, job, &held, p);

    return rv == APR_SUCCESS ? mdl_rows_one(held) : rv;
}

/* Jobs that may not run are released in the transaction of their claim. */
static apr_status_t job_claim_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    claiming_t *claiming = arg;
    int suspects = claiming->suspects;
    apr_status_t rv = mdl_job_claim(db, p, &claiming->claim);

    claiming->admitted = apr_array_make(p, 16, sizeof(mdl_job_t *));
    claiming->refused = apr_array_make(p, 16, sizeof(mdl_job_t *));
    for (int i = 0; rv == APR_SUCCESS && i < claiming->claim.jobs->nelts; i++) {
        mdl_job_t *job = APR_ARRAY_IDX(claiming->claim.jobs, i, mdl_job_t *);
        const mdl_job_handler_t *handler = mdl_handler_of(job);
        apr_time_t due_at = job_wait_until(job, &suspects);

        if (due_at != 0) {
            job->due_at = due_at;
            APR_ARRAY_PUSH(claiming->refused, mdl_job_t *) = job;
            rv = job_release_claimed(db, job, p);
            continue;
        }
        APR_ARRAY_PUSH(claiming->admitted, mdl_job_t *) = job;
        if (handler->claimed != NULL) {
            rv = handler->claimed(db, claiming->storage, job, p);
        }
    }
    return rv;
}

static apr_array_header_t *lane_shops(const mdl_worker_t *worker, mdl_job_lane_t lane)
{
    apr_array_header_t *shops = apr_array_make(worker->turn, 16, sizeof(apr_int64_t));

    for (const mdl_task_t *task = worker->tasks; task != NULL; task = task->peer) {
        if (task->place == MDL_TASK_IN_LANE && task->lane == lane) {
            APR_ARRAY_PUSH(shops, apr_int64_t) = task->job->shop_id;
        }
    }
    return shops;
}

/* The next claim begins after the last shop, in turn, that got a job in this one. */
static void lane_turn(mdl_lane_t *lane, const apr_array_header_t *jobs)
{
    apr_int64_t before = lane->after;

    for (int i = 0; i < jobs->nelts; i++) {
        apr_int64_t shop = APR_ARRAY_IDX(jobs, i, mdl_job_t *)->shop_id;

        if (i == 0 || (shop <= before) > (lane->after <= before) ||
            ((shop <= before) == (lane->after <= before) && shop > lane->after)) {
            lane->after = shop;
        }
    }
}

/* Prepares the lane's next claim.  Jobs left over belong to another worker that is claiming them,
   to shops with no free slot, or to shops not scanned yet.  Once all shops are scanned, they wait
   until a task ends or a job is queued. */
static void lane_claimed(mdl_worker_t *worker, mdl_lane_t *lane, const mdl_job_claim_t *claim,
                         apr_time_t now)
{
    apr_time_t due_at = claim->look->due_at[claim->lane];

    lane->claimed_at = mdl_clock_monotonic();
    lane->behind = due_at != 0 && due_at <= now;
    lane_turn(lane, claim->jobs);
    if (claim->share != NULL) {
        lane->shops_seen = claim->jobs->nelts == 0 ? lane->shops_seen + SHOPS : 0;
        lane->shops_from = claim->share->to < claim->look->newest_shop ? claim->share->to : 0;
    }
    if (lane->behind && claim->jobs->nelts < claim->limit) {
        lane->held_until = lane->claimed_at + (lane->shops_seen < claim->look->newest_shop
                                                   ? HELD
                                                   : worker->service->settings->poll_interval);
    }
}

void mdl_claim_lane(mdl_worker_t *worker, mdl_job_lane_t index)
{
    mdl_lane_t *lane = &worker->lanes[index];
    int slots = mdl_worker_slots(worker, index);
    apr_time_t now = apr_time_now();
    apr_time_t leased_until = mdl_clock_monotonic() + worker->service->settings->lease_time;
    mdl_job_share_t share = {.running = lane_shops(worker, index),
                             .after = lane->after,
                             .from = lane->shops_from,
                             .to = lane->shops_from + SHOPS};
    claiming_t claiming = {.claim = {.lane = index,
                                     .owner = worker->owner,
                                     .limit = mdl_job_slots_alone(slots),
                                     .look = &worker->jobs},
                           .storage = worker->storage,
                           .suspects = suspects_at_work(worker)};
    int busy = mdl_worker_busy(worker, index);

    if (busy > 0 || lane->behind) {
        claiming.claim.share = &share;
        claiming.claim.limit = slots - busy;
    }
    if (mdl_worker_write(worker, job_claim_effect, &claiming) != APR_SUCCESS) {
        /* Retry after a second: the loop must not spin while the database fails. */
        worker->jobs.due_at[index] = now + SECOND;
        return;
    }
    marks_raise(worker, now);
    lane_claimed(worker, lane, &claiming.claim, now);
    for (int i = 0; i < claiming.refused->nelts; i++) {
        mdl_worker_note_due(worker, index, APR_ARRAY_IDX(claiming.refused, i, mdl_job_t *)->due_at);
    }
    jobs_begin(worker, index, claiming.admitted, leased_until);
}

/* --- blocked shops --- */

MDL_EFFECT(mdl_shop_list_blocked, apr_array_header_t **)

void mdl_claim_give_back_blocked(mdl_worker_t *worker)
{
    apr_array_header_t *blocked;

    if (worker->tasks == NULL || mdl_reconnect_read(worker->database, mdl_shop_list_blocked_effect,
                                                    &blocked, worker->turn) != APR_SUCCESS) {
        return;
    }
    for (mdl_task_t *task = worker->tasks; task != NULL; task = task->peer) {
        if (task->place == MDL_TASK_IN_LANE && mdl_ids_has(blocked, task->job->shop_id) &&
            !atomic_exchange(&task->blocked, 1)) {
            mdl_runner_wake(task->runner);
        }
    }
}

/* --- renew --- */

static int task_needs_renewal(const mdl_task_t *task, apr_time_t now)
{
    apr_interval_time_t lease = task->service->settings->lease_time;

    return task->reported != atomic_load(&task->mark->received) ||
           atomic_load(&task->leased_until) - now < lease - lease / 3;
}

typedef struct {
    apr_array_header_t *tasks; /* mdl_task_t * */
    apr_time_t now;            /* by mdl_clock_monotonic */
} renewal_t;

static void renewal_add(renewal_t *renewal, mdl_task_t *task)
{
    if (!atomic_load(&task->lost) && task_needs_renewal(task, renewal->now)) {
        APR_ARRAY_PUSH(renewal->tasks, mdl_task_t *) = task;
    }
}

/* Each task's result is in task->renewal, valid once committed. */
static apr_status_t renew_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const renewal_t *renewal = arg;
    apr_status_t rv = mdl_db_wait_briefly(db);

    for (int i = 0; rv == APR_SUCCESS && i < renewal->tasks->nelts; i++) {
        mdl_task_t *task = APR_ARRAY_IDX(renewal->tasks, i, mdl_task_t *);

        mdl_task_progress(task);
        task->renewal = mdl_job_renew(db, task->job, p);
        rv = task->renewal == APR_ENOENT ? APR_SUCCESS : task->renewal;
    }
    return rv;
}

static void task_renewed(mdl_task_t *task, apr_time_t now)
{
    if (task->renewal == APR_SUCCESS) {
        task->reported = task->job->bytes_received;
        atomic_store(&task->leased_until, now + task->service->settings->lease_time);
        return;
    }
    mdl_log(MDL_LOG_NOTICE, 0, "MDL0325: job %s: the lease is lost", task->job->id);
    atomic_store(&task->lost, 1);
    if (task->runner != NULL) {
        mdl_runner_wake(task->runner);
    }
}

/* Renews in one transaction, or one by one if a job is locked. */
static void tasks_renew(mdl_worker_t *worker, const renewal_t *renewal)
{
    apr_status_t rv = mdl_worker_settle(worker, renew_effect, (void *)renewal);

    for (int i = 0; i < renewal->tasks->nelts; i++) {
        mdl_task_t *task = APR_ARRAY_IDX(renewal->tasks, i, mdl_task_t *);

        if (rv == APR_SUCCESS) {
            task_renewed(task, renewal->now);
        } else if (rv == MDL_DB_ELOCKED && renewal->tasks->nelts > 1) {
            renewal_t alone = {apr_array_make(worker->turn, 1, sizeof task), renewal->now};

            APR_ARRAY_PUSH(alone.tasks, mdl_task_t *) = task;
            tasks_renew(worker, &alone);
        }
    }
}

void mdl_claim_renew(mdl_worker_t *worker)
{
    renewal_t renewal = {apr_array_make(worker->turn, 16, sizeof(mdl_task_t *)),
                         mdl_clock_monotonic()};

    for (mdl_task_t *task = worker->tasks; task != NULL; task = task->peer) {
        renewal_add(&renewal, task);
    }
    if (renewal.tasks->nelts > 0) {
        tasks_renew(worker, &renewal);
    }
}

/* --- take over --- */

static int worker_has(const mdl_worker_t *worker, const char *job_id)
{
    const mdl_task_t *task = worker->tasks;

    while (task != NULL && strcmp(task->job->id, job_id) != 0) {
        task = task->peer;
    }
    return task != NULL;
}

MDL_EFFECT(mdl_job_beats, apr_array_header_t **)
MDL_EFFECT(mdl_job_expire, const apr_array_header_t *)

/* Also takes over this worker's own jobs without a task: their claim's COMMIT was not answered. */
void mdl_claim_take_over(mdl_worker_t *worker)
{
    apr_array_header_t *leases, *lost;
    apr_status_t rv = mdl_reconnect_read(worker->database, mdl_job_beats_effect, &leases,
                                         worker->turn);
    int others = 0;

    lost = mdl_beats_look(worker->leases, rv == APR_SUCCESS ? leases : NULL, worker->turn);
    for (int i = 0; i < lost->nelts; i++) {
        mdl_beat_t job = APR_ARRAY_IDX(lost, i, mdl_beat_t);

        if (!worker_has(worker, job.id)) {
            APR_ARRAY_IDX(lost, others++, mdl_beat_t) = job;
        }
    }
    lost->nelts = others;
    if (others > 0 && mdl_worker_settle(worker, mdl_job_expire_effect, lost) == APR_SUCCESS) {
        mdl_worker_look_anew(worker);
    }
}
