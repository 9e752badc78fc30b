#include "worker/runner.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <apr_thread_proc.h>

#include "base/clock.h"
#include "worker/handler.h"

#define LOOK_MS 500   /* between checks for lost leases while transfers run */
#define IDLE_MS 10000 /* wait without a task; a mail runner closes its connection after that */

struct mdl_queue_t {
    apr_thread_mutex_t *mutex;
    int fd;
    mdl_task_t *first;
    mdl_task_t **last;
};

struct mdl_runner_t {
    mdl_runner_kind_t kind;
    int number;
    const mdl_service_t *service;
    apr_pool_t *pool;
    apr_thread_t *thread;
    mdl_queue_t *inbox;
    mdl_queue_t *done;
    atomic_int stopping;
    atomic_uint passes;
    mdl_task_t *active; /* only for the runner's thread, like all below */
    apr_array_header_t *arrived;
    mdl_http_client_t *http;
    mdl_mailer_t *mailer;
    int idle; /* whether the mailer has no connection */
};

static apr_status_t queue_close(void *data)
{
    close(((mdl_queue_t *)data)->fd);
    return APR_SUCCESS;
}

apr_status_t mdl_queue_create(mdl_queue_t **made, apr_pool_t *p)
{
    mdl_queue_t *queue = apr_pcalloc(p, sizeof *queue);
    apr_status_t rv = apr_thread_mutex_create(&queue->mutex, APR_THREAD_MUTEX_DEFAULT, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    queue->last = &queue->first;
    if ((queue->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0) {
        return errno;
    }
    apr_pool_cleanup_register(p, queue, queue_close, apr_pool_cleanup_null);
    *made = queue;
    return APR_SUCCESS;
}

int mdl_queue_fd(const mdl_queue_t *queue)
{
    return queue->fd;
}

static void queue_ring(int fd)
{
    const apr_uint64_t one = 1;

    /* Fails only if the counter is full, and then the descriptor is readable already. */
    if (write(fd, &one, sizeof one) < 0) {
        return;
    }
}

static void queue_silence(int fd)
{
    apr_uint64_t count;

    if (read(fd, &count, sizeof count) < 0) {
        return;
    }
}

void mdl_queue_put(mdl_queue_t *queue, mdl_task_t *task)
{
    task->next = NULL;
    apr_thread_mutex_lock(queue->mutex);
    *queue->last = task;
    queue->last = &task->next;
    apr_thread_mutex_unlock(queue->mutex);
    queue_ring(queue->fd);
}

mdl_task_t *mdl_queue_take(mdl_queue_t *queue)
{
    mdl_task_t *first;

    queue_silence(queue->fd);
    apr_thread_mutex_lock(queue->mutex);
    first = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    apr_thread_mutex_unlock(queue->mutex);
    return first;
}

mdl_http_client_t *mdl_runner_http(mdl_runner_t *runner)
{
    return runner->http;
}

mdl_mailer_t *mdl_runner_mailer(mdl_runner_t *runner)
{
    return runner->mailer;
}

int mdl_runner_stopping(const mdl_runner_t *runner)
{
    return atomic_load(&((mdl_runner_t *)runner)->stopping);
}

void mdl_runner_arrived(mdl_task_t *task)
{
    APR_ARRAY_PUSH(task->runner->arrived, mdl_task_t *) = task;
}

void mdl_runner_done(mdl_task_t *task, mdl_outcome_t outcome)
{
    mdl_runner_t *runner = task->runner;

    for (mdl_task_t **at = &runner->active; *at != NULL; at = &(*at)->next) {
        if (*at == task) {
            *at = task->next;
            break;
        }
    }
    task->outcome = outcome;
    mdl_task_begun(task, MDL_BEGUN_NOT);
    mdl_queue_put(runner->done, task);
}

void mdl_runner_done_with(mdl_task_t *task, mdl_outcome_t outcome, const char *code,
                          const char *message)
{
    task->job->error_code = code;
    task->job->error_message = message;
    mdl_runner_done(task, outcome);
}

static void runner_start_new(mdl_runner_t *runner)
{
    mdl_task_t *next;

    for (mdl_task_t *task = mdl_queue_take(runner->inbox); task != NULL; task = next) {
        next = task->next;
        task->next = runner->active;
        runner->active = task;
        runner->idle = 0;
        if (mdl_runner_stopping(runner) || atomic_load(&task->blocked)) {
            mdl_runner_done(task, MDL_TASK_RELEASED);
        } else if (atomic_load(&task->lost) ||
                   mdl_clock_monotonic() > atomic_load(&task->leased_until)) {
            mdl_runner_done(task, MDL_TASK_ABANDONED); /* another worker may have the job by now */
        } else {
            mdl_task_begun(task, MDL_BEGUN_WORKS);
            task->handler->start(task);
        }
    }
}

/* Goes through the tasks and stops those whose lease is lost or whose shop is blocked, or all. */
static void runner_pass(mdl_runner_t *runner, int all)
{
    unsigned pass = atomic_fetch_add(&runner->passes, 1) + 1;
    mdl_task_t *next;

    for (mdl_task_t *task = runner->active; task != NULL; task = next) {
        int lost = atomic_load(&task->lost);

        next = task->next;
        atomic_store(&task->pass, pass);
        if (all || lost || atomic_load(&task->blocked)) {
            task->handler->stop(task);
            mdl_runner_done(task, lost ? MDL_TASK_ABANDONED : MDL_TASK_RELEASED);
        }
    }
}

static void runner_wait_for_work(mdl_runner_t *runner)
{
    struct pollfd inbox = {.fd = runner->inbox->fd, .events = POLLIN};

    if (runner->kind == MDL_RUNNER_TRANSFER) {
        mdl_http_client_run(runner->http, runner->active != NULL ? LOOK_MS : IDLE_MS);
    } else if (poll(&inbox, 1, runner->idle ? -1 : IDLE_MS) == 0) {
        runner->idle = 1;
        if (runner->mailer != NULL) {
            mdl_mailer_disconnect(runner->mailer);
        }
    }
}

/* All arrived tasks have one handler: a lane has at most one with finish. */
static void runner_finish_arrived(mdl_runner_t *runner)
{
    apr_pool_t *turn;

    if (runner->arrived->nelts == 0) {
        return;
    }
    apr_pool_create(&turn, runner->pool);
    APR_ARRAY_IDX(runner->arrived, 0, mdl_task_t *)->handler->finish(runner->arrived, turn);
    apr_array_clear(runner->arrived);
    apr_pool_destroy(turn);
}

static void *APR_THREAD_FUNC runner_run(apr_thread_t *thread, void *data)
{
    mdl_runner_t *runner = data;

    (void)thread;
    while (!mdl_runner_stopping(runner)) {
        runner_start_new(runner);
        runner_pass(runner, 0);
        runner_wait_for_work(runner);
        runner_finish_arrived(runner);
    }
    runner_start_new(runner);
    runner_pass(runner, 1);
    return NULL;
}

static int runner_is_stopping(void *baton)
{
    return mdl_runner_stopping(baton);
}

/* Called in the runner's thread, for the message being sent. */
static int runner_withdraws(void *baton)
{
    const mdl_runner_t *runner = baton;

    return runner->active != NULL && mdl_task_withdrawn(runner->active);
}

static apr_status_t runner_equip(mdl_runner_t *runner)
{
    const mdl_settings_t *settings = runner->service->settings;
    mdl_mail_config_t *config;

    if (runner->kind == MDL_RUNNER_TRANSFER) {
        return mdl_http_client_create(&runner->http, &settings->ingest, runner->pool);
    }
    if (runner->kind == MDL_RUNNER_HASH) {
        return APR_SUCCESS;
    }
    config = apr_pmemdup(runner->pool, &settings->mail, sizeof *config);
    config->stopped = runner_is_stopping;
    config->withdrawn = runner_withdraws;
    config->baton = runner;
    return mdl_mailer_create(&runner->mailer, config, runner->pool);
}

apr_status_t mdl_runner_start(mdl_runner_t **made, mdl_runner_kind_t kind, int number,
                              const mdl_service_t *service, mdl_queue_t *done, apr_pool_t *p)
{
    mdl_runner_t *runner = apr_pcalloc(p, sizeof *runner);
    apr_status_t rv;

    runner->kind = kind;
    runner->number = number;
    runner->service = service;
    runner->done = done;
    /* The thread's own pool, so that it does not race with the control thread. */
    if ((rv = apr_pool_create_unmanaged_ex(&runner->pool, NULL, NULL)) != APR_SUCCESS) {
        return rv;
    }
    apr_pool_tag(runner->pool, "mdl_runner");
    runner->arrived = apr_array_make(runner->pool, 16, sizeof(mdl_task_t *));
    if ((rv = mdl_queue_create(&runner->inbox, runner->pool)) != APR_SUCCESS ||
        (rv = runner_equip(runner)) != APR_SUCCESS) {
        return rv;
    }
    *made = runner;
    return apr_thread_create(&runner->thread, NULL, runner_run, runner, p);
}

void mdl_runner_put(mdl_runner_t *runner, mdl_task_t *task)
{
    task->runner = runner;
    task->place = MDL_TASK_IN_LANE;
    atomic_store(&task->pass, mdl_runner_passes(runner));
    mdl_queue_put(runner->inbox, task);
    mdl_runner_wake(runner);
}

int mdl_runner_number(const mdl_runner_t *runner)
{
    return runner->number;
}

unsigned mdl_runner_passes(const mdl_runner_t *runner)
{
    return atomic_load(&runner->passes);
}

void mdl_runner_wake(mdl_runner_t *runner)
{
    if (runner->kind == MDL_RUNNER_TRANSFER) {
        mdl_http_client_wake(runner->http);
    } else {
        queue_ring(runner->inbox->fd);
    }
}

void mdl_runner_stop(mdl_runner_t *runner)
{
    atomic_store(&runner->stopping, 1);
    mdl_runner_wake(runner);
}

void mdl_runner_join(mdl_runner_t *runner)
{
    apr_status_t rv;

    apr_thread_join(&rv, runner->thread);
    apr_pool_destroy(runner->pool);
}
