/*
 * An email of a job: rendered from templates, and sent.
 */
#ifndef MDL_WORKER_MESSAGE_H
#define MDL_WORKER_MESSAGE_H

#include "base/mail/mime.h"
#include "base/text/letter.h"
#include "worker/task.h"

typedef struct {
    const char *sender; /* gets bounces */
    const char *to;
    const char *bytes;
    apr_size_t length;
    const char *response; /* what the mail server said when it took the message, or NULL */
} mdl_message_t;

/** The input for a message. */
typedef struct {
    mdl_letter_source_t letter;
    int is_test;          /* its subject says so */
    mdl_mime_mail_t mime; /* without subject, text and html */
} mdl_message_source_t;

/** For prepare: renders a message into the task's pool; p is scratch.  On failure returns APR_EOF,
    and the task has its outcome. */
apr_status_t mdl_message_build(mdl_task_t *task, mdl_message_t *message,
                               const mdl_message_source_t *source, apr_pool_t *p);

/** Gives a task its outcome without sending anything; returns prepare's result. */
apr_status_t mdl_message_unsent(mdl_task_t *task, mdl_outcome_t outcome, const char *code,
                                const char *why);

/** For start: sends a message and ends the task. */
void mdl_message_send(mdl_task_t *task, mdl_message_t *message);

#endif
