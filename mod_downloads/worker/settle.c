#include "worker/settle.h"

#include <apr_time.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/catalog/asset.h"
#include "core/catalog/blob.h"
#include "core/metrics.h"
#include "worker/handler.h"

#define MAX_DOUBLINGS 10
#define AGAIN         apr_time_from_sec(1) /* between tries of postponed tasks */
#define MAX_REFUSALS  5

static apr_interval_time_t task_back_off(const mdl_task_t *task)
{
    int doublings = task->job->attempts - 1;
    apr_interval_time_t usual = task->service->settings->retry_delay
                                << (doublings > MAX_DOUBLINGS ? MAX_DOUBLINGS : doublings);

    if (task->retry_after != 0) {
        return task->retry_after;
    }
    return usual > task->least_wait ? usual : task->least_wait;
}

/* Sends the statement that ends or requeues the job; *held as in core/job.h, NULL if there is
   nothing to write. */
static apr_status_t task_end_job(mdl_db_t *db, mdl_task_t *task, mdl_rows_t **held, apr_pool_t *p)
{
    mdl_job_t *job = task->job;

    *held = NULL;
    mdl_task_progress(task);
    if (task->outcome == MDL_TASK_RETRY && job->attempts >= job->max_attempts) {
        task->outcome = MDL_TASK_FAILED;
    }
    if (task->outcome == MDL_TASK_FAILED && job->type == MDL_JOB_WEBHOOK) {
        task->outcome = MDL_TASK_RETRY; /* the job lasts as long as its endpoint */
    }
    switch (task->outcome) {
    case MDL_TASK_SUCCEEDED:
        job->status = MDL_JOB_SUCCEEDED;
        job->error_code = job->error_message = NULL; /* of an earlier attempt */
        return mdl_job_finish(db, job, held, p);
    case MDL_TASK_FAILED:
        job->status = MDL_JOB_FAILED;
        return mdl_job_finish(db, job, held, p);
    case MDL_TASK_RETRY:
        job->due_at = apr_time_now() + task_back_off(task);
        return mdl_job_retry_later(db, job, held, p);
    case MDL_TASK_RELEASED:
        job->due_at = job->due_at != 0 ? job->due_at : apr_time_now();
        return mdl_job_release(db, job, held, p);
    default:
        return APR_SUCCESS;
    }
}

/* Sends that and the settlement's queries, so that all tasks share one round trip. */
static apr_status_t task_ask(mdl_db_t *db, mdl_task_t *task, mdl_rows_t **held, apr_pool_t *p)
{
    apr_status_t rv = task_end_job(db, task, held, p);

    task->asked = task->kept = NULL;
    return rv == APR_SUCCESS && task->stored != NULL && task->outcome == MDL_TASK_SUCCEEDED
               ? mdl_asset_ask(db, task->job->asset_id, task->job->id, &task->asked, p)
               : rv;
}

/* Once it is committed.  A task that was released has not ended. */
static void task_count(mdl_db_t *db, const mdl_task_t *task, int lost)
{
    static const int mails[] = {[MDL_ENDED_WELL] = MDL_MAILS_SENT,
                                [MDL_ENDED_AGAIN] = MDL_MAILS_RETRIED,
                                [MDL_ENDED_FAILED] = MDL_MAILS_FAILED};
    mdl_job_type_t type = task->job->type;
    int end = lost                                  ? MDL_ENDED_LOST
              : task->outcome == MDL_TASK_SUCCEEDED ? MDL_ENDED_WELL
              : task->outcome == MDL_TASK_RETRY     ? MDL_ENDED_AGAIN
                                                    : MDL_ENDED_FAILED;

    if (!lost && (task->outcome == MDL_TASK_RELEASED || task->outcome == MDL_TASK_ABANDONED)) {
        return;
    }
    mdl_db_count(db, &mdl_metrics->jobs_ended[type][end], 1);
    if (!lost && (type == MDL_JOB_EMAIL || type == MDL_JOB_STAFF_EMAIL ||
                  type == MDL_JOB_FIND_EMAIL || type == MDL_JOB_NEWS)) {
        mdl_db_count(db, &mdl_metrics->emails[mails[end]], 1);
    }
}

static apr_status_t task_settle(mdl_db_t *db, mdl_task_t *task, mdl_rows_t *held, apr_pool_t *p)
{
    apr_status_t rv = held != NULL ? mdl_rows_one(held) : APR_SUCCESS;

    if (rv == APR_SUCCESS && held != NULL && task->handler != NULL &&
        task->handler->settle != NULL) {
        mdl_db_set_request(db, task->job->request_id); /* which causes what the job causes */
        rv = task->handler->settle(db, task, p);
        mdl_db_set_request(db, NULL);
    }
    if (rv == APR_SUCCESS || rv == APR_ENOENT) {
        task_count(db, task, rv == APR_ENOENT);
    }
    if (rv == APR_ENOENT) {
        atomic_store(&task->lost, 1);
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0323: job %s was cancelled, or taken over by another worker",
                task->job->id);
        rv = mdl_blob_leave(db, task->stored, p);
    }
    return rv;
}

typedef struct {
    mdl_task_t *tasks; /* linked by next */
    mdl_db_due_t due;  /* the jobs and events that it queued */
} list_t;

static apr_status_t list_settle_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    list_t *list = arg;
    apr_array_header_t *held = apr_array_make(p, 16, sizeof(mdl_rows_t *));
    apr_status_t rv = mdl_db_wait_briefly(db);
    mdl_task_t *task;
    int i = 0;

    mdl_db_take_due(db);
    for (task = list->tasks; rv == APR_SUCCESS && task != NULL; task = task->next) {
        rv = task_ask(db, task, &APR_ARRAY_PUSH(held, mdl_rows_t *), p);
    }
    for (task = list->tasks; rv == APR_SUCCESS && task != NULL; task = task->next) {
        rv = task_settle(db, task, APR_ARRAY_IDX(held, i++, mdl_rows_t *), p);
    }
    for (task = list->tasks; rv == APR_SUCCESS && task != NULL; task = task->next) {
        if (task->kept != NULL) {
            rv = mdl_blob_check(db, task->kept, task->storage, task->stored, p);
        }
    }
    list->due = mdl_db_take_due(db);
    return rv;
}

static apr_status_t list_write(mdl_worker_t *worker, mdl_task_t *tasks)
{
    list_t list = {.tasks = tasks};
    apr_status_t rv = mdl_worker_settle(worker, list_settle_effect, &list);

    if (rv == APR_SUCCESS) {
        worker->look |= list.due.at != 0;
        worker->events |= list.due.events;
    }
    return rv;
}

static void task_forget(mdl_worker_t *worker, mdl_task_t *task)
{
    const mdl_job_t *job = task->job;

    if (atomic_load(&task->lost)) {
        worker->look_cancelled = 1;
    } else if (task->outcome == MDL_TASK_RELEASED || task->outcome == MDL_TASK_RETRY) {
        mdl_worker_note_due(worker, job->lane, job->due_at);
    }
    mdl_worker_forget(worker, task);
}

/* Whether a retry may succeed. */
static int is_passing(apr_status_t rv)
{
    return mdl_db_unavailable(rv) || rv == MDL_DB_EFULL;
}

/* Gives up a result that the database refuses: the job fails without it. */
static apr_status_t task_settle_refused(mdl_worker_t *worker, mdl_task_t *task, apr_status_t rv)
{
    if (rv == APR_EINCOMPLETE) {
        task->job->error_code = "internal_error";
        task->job->error_message = "The same bytes were being removed from storage.";
        task->outcome = MDL_TASK_RETRY;
        rv = list_write(worker, task);
    } else if (rv == MDL_DB_EOTHER) {
        atomic_store(&task->validator, NULL);
        task->job->error_code = "internal_error";
        task->job->error_message = "The result of the job could not be stored.";
        task->outcome = MDL_TASK_FAILED;
        rv = list_write(worker, task);
    }
    mdl_log(MDL_LOG_ERR, 0, "MDL0324: the result of job %s can't be written down; %s",
            task->job->id,
            rv == APR_SUCCESS && task->outcome == MDL_TASK_FAILED ? "it has failed"
                                                                  : "it is done again later");
    return rv;
}

static void task_postpone(mdl_task_t *task)
{
    task->place = MDL_TASK_POSTPONED;
    task->postponed_at = mdl_clock_monotonic();
}

/* Forgets a settled task, or keeps it for a retry. */
static void task_put(mdl_worker_t *worker, mdl_task_t *task, apr_status_t rv)
{
    int again = rv == MDL_DB_EOTHER && ++task->refusals < MAX_REFUSALS;

    if (rv != APR_SUCCESS && !is_passing(rv) && !again) {
        rv = task_settle_refused(worker, task, rv);
    }
    if (rv == MDL_DB_ELOCKED || again) {
        task_postpone(task);
    } else if (is_passing(rv)) {
        mdl_worker_end(task, task->outcome);
    } else {
        task_forget(worker, task);
    }
}

/* Settles tasks in one transaction, or each in its own if one is refused or locked. */
static void list_settle(mdl_worker_t *worker, mdl_task_t *task)
{
    apr_status_t rv = list_write(worker, task);
    int singly = task->next != NULL && rv != APR_SUCCESS &&
                 (!is_passing(rv) || rv == MDL_DB_ELOCKED);
    mdl_task_t *next;

    for (; task != NULL; task = next) {
        next = task->next;
        task->next = NULL;
        task_put(worker, task, singly ? list_write(worker, task) : rv);
    }
}

/* The task that was postponed longest ago; NULL if there is none. */
static mdl_task_t *postponed_next(const mdl_worker_t *worker)
{
    mdl_task_t *first = NULL;

    for (mdl_task_t *task = worker->tasks; task != NULL; task = task->peer) {
        if (task->place == MDL_TASK_POSTPONED &&
            (first == NULL || task->postponed_at < first->postponed_at)) {
            first = task;
        }
    }
    return first;
}

/* Retries postponed tasks until one fails, because each try waits for its locked row. */
static void settle_postponed(mdl_worker_t *worker)
{
    apr_time_t now = mdl_clock_monotonic();
    apr_status_t rv = APR_SUCCESS;
    mdl_task_t *task;

    if (now < worker->postponed_until) {
        return;
    }
    while (rv == APR_SUCCESS && (task = postponed_next(worker)) != NULL) {
        rv = list_write(worker, task);
        task_put(worker, task, rv);
    }
    worker->postponed_until = now + AGAIN;
}

void mdl_settle_ended(mdl_worker_t *worker)
{
    mdl_task_t *group = NULL;
    mdl_task_t *next;

    settle_postponed(worker);
    for (mdl_task_t *task = worker->tasks; task != NULL; task = next) {
        next = task->peer;
        if (task->place != MDL_TASK_ENDED) {
            continue;
        }
        task->next = NULL;
        if (task->handler != NULL && task->handler->alone) {
            list_settle(worker, task);
        } else {
            task->next = group;
            group = task;
        }
    }
    if (group != NULL) {
        list_settle(worker, group);
    }
}
