#include "worker/worker.h"

#include <stdio.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_thread_mutex.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/catalog/storage_identity.h"
#include "core/node.h"

#define KEPT_MEMORY (4 * 1024 * 1024)

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

static apr_status_t database_accept(mdl_db_t *db, void *baton, const char **why, apr_pool_t *p)
{
    const mdl_settings_t *settings = baton;
    apr_status_t rv = mdl_storage_belongs(db, &settings->storage, 1, why, p);

    if (mdl_storage_unasked(rv)) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0356: the background process could not look whether the object store belongs "
                "to the database: %s",
                *why);
        return APR_SUCCESS;
    }
    return rv;
}

/* Migrates and checks the storage here too: the parent could not if the database was unreachable at
   its start. */
static mdl_reconnect_t *database_create(const mdl_settings_t *settings, apr_pool_t *p)
{
    const mdl_reconnect_config_t config = {
        .driver = settings->db_driver,
        .params = settings->db_params,
        .migrate = settings->migrate,
        .lost = "MDL0320: the background process can't work on the database and goes on trying",
        .found = "MDL0321: the background process works on the database again",
        .accept = database_accept,
        .baton = (void *)settings};

    return mdl_reconnect_create(&config, p);
}

static apr_status_t allocator_destroy(void *data)
{
    apr_allocator_destroy(data);
    return APR_SUCCESS;
}

/* An allocator that keeps ended tasks' memory for later tasks. */
static apr_status_t allocator_create(apr_allocator_t **allocator, apr_pool_t *p)
{
    apr_thread_mutex_t *mutex;
    apr_status_t rv = apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT, p);

    if (rv == APR_SUCCESS && (rv = apr_allocator_create(allocator)) == APR_SUCCESS) {
        apr_allocator_mutex_set(*allocator, mutex);
        apr_allocator_max_free_set(*allocator, KEPT_MEMORY);
        apr_pool_cleanup_register(p, *allocator, allocator_destroy, apr_pool_cleanup_null);
    }
    return rv;
}

apr_status_t mdl_worker_create(mdl_worker_t **made, const mdl_service_t *service, const char *owner,
                               apr_pool_t *p)
{
    mdl_worker_t *worker = apr_pcalloc(p, sizeof *worker);
    apr_status_t rv;

    worker->service = service;
    worker->owner = owner;
    worker->boot_id = read_boot_id(p);
    worker->database = database_create(service->settings, p);
    worker->leases = mdl_beats_watch(service->settings->lease_time, p);
    worker->templates = mdl_template_cache_create(service->settings->templates,
                                                  mdl_settings_template_names, p);
    if ((rv = allocator_create(&worker->allocator, p)) != APR_SUCCESS) {
        return rv;
    }
    apr_pool_create(&worker->turn, p);
    apr_pool_tag(worker->turn, "mdl_worker_turn");
    if ((rv = mdl_storage_open(&worker->storage, &service->settings->storage, p)) != APR_SUCCESS) {
        mdl_log(
            MDL_LOG_ERR, rv,
            "MDL0326: can't use the storage %s; the httpd user must own its folder and key file",
            service->settings->storage.folder != NULL ? service->settings->storage.folder
                                                      : service->settings->storage.objects.url);
        return rv;
    }
    if ((rv = mdl_http_global_init(p)) != APR_SUCCESS ||
        (rv = mdl_queue_create(&worker->done, p)) != APR_SUCCESS ||
        (rv = mdl_lanes_start(worker->lanes, service, worker->done, p)) != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, rv, "MDL0327: can't start the background process's threads");
        mdl_lanes_stop(worker->lanes);
        mdl_lanes_join(worker->lanes);
        return rv;
    }
    *made = worker;
    return APR_SUCCESS;
}

apr_status_t mdl_worker_write(mdl_worker_t *worker, mdl_effect_fn *effect, void *arg)
{
    return mdl_reconnect_write(worker->database, effect, arg, worker->turn);
}

apr_status_t mdl_worker_settle(mdl_worker_t *worker, mdl_effect_fn *effect, void *arg)
{
    return mdl_reconnect_settle(worker->database, effect, arg, worker->turn);
}

void mdl_worker_look_anew(mdl_worker_t *worker)
{
    memset(worker->jobs.from, 0, sizeof worker->jobs.from);
    worker->look = 1;
}

void mdl_worker_note_due(mdl_worker_t *worker, mdl_job_lane_t lane, apr_time_t due_at)
{
    mdl_job_look_t *jobs = &worker->jobs;

    if (jobs->due_at[lane] == 0 || due_at < jobs->due_at[lane]) {
        jobs->due_at[lane] = due_at;
    }
    if (due_at < jobs->from[lane]) {
        jobs->from[lane] = due_at;
    }
}

int mdl_worker_busy(const mdl_worker_t *worker, mdl_job_lane_t lane)
{
    int busy = 0;

    for (const mdl_task_t *task = worker->tasks; task != NULL; task = task->peer) {
        busy += task->lane == lane;
    }
    return busy;
}

void mdl_worker_share(mdl_worker_t *worker, int nodes)
{
    const mdl_settings_t *settings = worker->service->settings;
    int before = worker->nodes;
    int rate, slots;

    if (nodes == before) {
        return;
    }
    rate = mdl_node_share(settings->mail_rate, nodes);
    slots = mdl_node_share(settings->mail_connections, nodes);
    worker->nodes = nodes;
    worker->lanes[MDL_LANE_MAIL].slots = slots;
    mdl_rate_limit_set_mail(worker->service->rate_limit, rate);
    if (before > 1 || nodes > 1) {
        mdl_log(MDL_LOG_NOTICE, 0,
                "MDL0359: live nodes that send emails: %d; this one's share is %d connections and "
                "%d emails of each shop an hour (0: no limit)",
                nodes, slots, rate);
    }
}

/* News leave over the connections of orders' emails. */
static mdl_job_lane_t lane_of_runners(mdl_job_lane_t lane)
{
    return lane == MDL_LANE_NEWS ? MDL_LANE_MAIL : lane;
}

mdl_runner_t *mdl_worker_runner(const mdl_worker_t *worker, mdl_job_lane_t index)
{
    mdl_job_lane_t own = lane_of_runners(index);
    const mdl_lane_t *lane = &worker->lanes[own];
    int loads[MDL_LANE_MAX_RUNNERS] = {0};
    int best = 0;

    for (const mdl_task_t *task = worker->tasks; task != NULL; task = task->peer) {
        if (lane_of_runners(task->lane) == own && task->runner != NULL) {
            loads[mdl_runner_number(task->runner)]++;
        }
    }
    for (int i = 1; i < lane->runner_count; i++) {
        best = loads[i] < loads[best] ? i : best;
    }
    return lane->runners[best];
}

/* News get up to half of the connections, those that orders' emails leave; none while one of these
   waits. */
static int news_slots(const mdl_worker_t *worker)
{
    int all = worker->lanes[MDL_LANE_MAIL].slots;
    int half = all > 1 ? all / 2 : all;
    int left = all - mdl_worker_busy(worker, MDL_LANE_MAIL);
    apr_time_t due_at = worker->jobs.due_at[MDL_LANE_MAIL];

    if (due_at != 0 && due_at <= apr_time_now()) {
        return 0;
    }
    return left < half ? left : half;
}

int mdl_worker_slots(const mdl_worker_t *worker, mdl_job_lane_t index)
{
    mdl_object_store_t *objects = mdl_storage_objects(worker->storage);
    int stores = index == MDL_LANE_SMALL || index == MDL_LANE_BULK;

    if (index == MDL_LANE_NEWS) {
        return news_slots(worker);
    }
    if (index == MDL_LANE_MAIL) {
        return worker->lanes[index].slots - mdl_worker_busy(worker, MDL_LANE_NEWS);
    }
    return stores && objects != NULL && mdl_object_store_is_away(objects)
               ? 1
               : worker->lanes[index].slots;
}

apr_time_t mdl_worker_claims_at(const mdl_worker_t *worker, mdl_job_lane_t index)
{
    const mdl_lane_t *lane = &worker->lanes[index];
    apr_time_t due_at = worker->jobs.due_at[index];

    if (due_at == 0 || mdl_worker_busy(worker, index) >= mdl_worker_slots(worker, index)) {
        return APR_INT64_MAX;
    }
    due_at += mdl_clock_monotonic() - apr_time_now();
    return due_at > lane->held_until ? due_at : lane->held_until;
}

void mdl_worker_end(mdl_task_t *task, mdl_outcome_t outcome)
{
    task->outcome = outcome;
    task->place = MDL_TASK_ENDED;
}

static void worker_unlink(mdl_worker_t *worker, const mdl_task_t *task)
{
    mdl_task_t **at = &worker->tasks;

    while (*at != task) {
        at = &(*at)->peer;
    }
    *at = task->peer;
    mdl_begun_remove(task->mark);
    worker->lanes[task->lane].held_until = 0;
}

void mdl_worker_forget(mdl_worker_t *worker, mdl_task_t *task)
{
    worker_unlink(worker, task);
    apr_pool_destroy(task->pool);
}

void mdl_worker_take_back(mdl_worker_t *worker)
{
    mdl_task_t *next;

    for (mdl_task_t *task = mdl_queue_take(worker->done); task != NULL; task = next) {
        next = task->next;
        mdl_worker_end(task, task->outcome);
    }
}

/* Its memory is leaked, because a thread may still point to it. */
static void task_lose(mdl_worker_t *worker, mdl_task_t *task)
{
    mdl_log(MDL_LOG_ERR, 0,
            "MDL0353: job %s was lost between the threads of the background process; it is done "
            "again when its lease has ended; please report this",
            task->job->id);
    worker_unlink(worker, task);
}

/* A runner marks its tasks in each pass.  Tasks that it ended before the pass in which it was asked
   have been taken back since. */
void mdl_worker_compare(mdl_worker_t *worker)
{
    mdl_task_t *next;

    for (mdl_task_t *task = worker->tasks; task != NULL; task = task->peer) {
        if (task->place == MDL_TASK_IN_LANE) {
            task->passes = mdl_runner_passes(task->runner);
            mdl_runner_wake(task->runner);
        }
    }
    mdl_worker_take_back(worker);
    for (mdl_task_t *task = worker->tasks; task != NULL; task = next) {
        next = task->peer;
        if (task->place == MDL_TASK_IN_LANE &&
            (int)(task->passes - atomic_load(&task->pass)) > MDL_RUNNER_PASSES) {
            task_lose(worker, task);
        }
    }
}

int mdl_worker_break_off(mdl_worker_t *worker, const char *job_id)
{
    mdl_task_t *task = worker->tasks;

    while (task != NULL &&
           (task->place != MDL_TASK_IN_LANE || strcmp(task->job->id, job_id) != 0)) {
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
