/*
 * The threads that do the work of a lane: a transfer runner has many transfers on one multi handle,
 * a hash runner reads one upload after another, a mail runner sends one message after another over
 * its own connection.
 */
#ifndef MDL_WORKER_RUNNER_H
#define MDL_WORKER_RUNNER_H

#include "base/http/client.h"
#include "base/mail/mailer.h"
#include "worker/task.h"

typedef enum { MDL_RUNNER_TRANSFER, MDL_RUNNER_HASH, MDL_RUNNER_MAIL } mdl_runner_kind_t;

/** A queue of tasks between threads; put makes the descriptor readable. */
typedef struct mdl_queue_t mdl_queue_t;
apr_status_t mdl_queue_create(mdl_queue_t **queue, apr_pool_t *p);
int mdl_queue_fd(const mdl_queue_t *queue);
void mdl_queue_put(mdl_queue_t *queue, mdl_task_t *task);
/** Takes all tasks, oldest first, and clears the descriptor; NULL if there are none. */
mdl_task_t *mdl_queue_take(mdl_queue_t *queue);

/** Starts the thread of a lane's runner; number is its index.  Ended tasks are put into done. */
apr_status_t mdl_runner_start(mdl_runner_t **runner, mdl_runner_kind_t kind, int number,
                              const mdl_service_t *service, mdl_queue_t *done, apr_pool_t *p);
int mdl_runner_number(const mdl_runner_t *runner);

/** Hands over a task, from the control thread. */
void mdl_runner_put(mdl_runner_t *runner, mdl_task_t *task);

/** How often the runner has gone through its tasks; it notes that in each task->pass. */
unsigned mdl_runner_passes(const mdl_runner_t *runner);
#define MDL_RUNNER_PASSES 2 /* until one at the latest a task is noted that was handed over */

/** Makes the runner go through its tasks now, and stop those that are lost. */
void mdl_runner_wake(mdl_runner_t *runner);

/** Asks a runner to release its tasks and end; returns at once.  A message that a mail server is
    receiving is finished first. */
void mdl_runner_stop(mdl_runner_t *runner);

/** Waits for its end. */
void mdl_runner_join(mdl_runner_t *runner);

/* For the handlers of jobs, in the runner's thread. */

mdl_http_client_t *mdl_runner_http(mdl_runner_t *runner);
mdl_mailer_t *mdl_runner_mailer(mdl_runner_t *runner);
/** Whether the runner was asked to end. */
int mdl_runner_stopping(const mdl_runner_t *runner);
/** Passes a task whose transfer has ended to its handler's finish. */
void mdl_runner_arrived(mdl_task_t *task);
/** Ends a task with an outcome, and puts it into done. */
void mdl_runner_done(mdl_task_t *task, mdl_outcome_t outcome);
/** The same, with the error for its job. */
void mdl_runner_done_with(mdl_task_t *task, mdl_outcome_t outcome, const char *code,
                          const char *message);

#endif
