#include "worker/message.h"

#include <apr_strings.h>

#include "base/log.h"
#include "worker/runner.h"

static const mdl_templates_t *message_templates(const mdl_task_t *task, apr_int64_t shop_id,
                                                apr_pool_t *p)
{
    apr_array_header_t *problems = apr_array_make(p, 1, sizeof(const char *));
    const mdl_templates_t *templates = mdl_template_cache_get(task->templates, shop_id, problems,
                                                              p);

    for (int i = 0; i < problems->nelts; i++) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0311: %s", APR_ARRAY_IDX(problems, i, const char *));
    }
    return templates;
}

apr_status_t mdl_message_build(mdl_task_t *task, mdl_message_t *message,
                               const mdl_message_source_t *source, apr_pool_t *p)
{
    const mdl_templates_t *templates = message_templates(task, source->letter.shop_id, p);
    mdl_mime_mail_t mime = source->mime;
    mdl_letter_t letter;
    apr_status_t rv;

    if (mdl_letter_choose(&letter, templates, &source->letter, p) != APR_SUCCESS) {
        return mdl_message_unsent(task, MDL_TASK_RETRY, "template",
                                  "A template of the email can't be read.");
    }
    /* Rendering a huge order may kill the process. */
    mdl_task_begun(task, MDL_BEGUN_WORKS);
    mime.subject = source->is_test ? mdl_letter_subject_of_test(&letter)
                                   : mdl_letter_subject(&letter);
    mime.text = (mdl_mime_body_t){mdl_letter_write_text, &letter};
    mime.html = (mdl_mime_body_t){mdl_letter_write_html, &letter};
    rv = mdl_mime_build(&message->bytes, &message->length, &mime, task->pool);
    mdl_task_begun(task, MDL_BEGUN_NOT);
    if (rv != APR_SUCCESS) {
        return mdl_message_unsent(task, MDL_TASK_FAILED, "address",
                                  "The address can't be written to.");
    }
    message->to = apr_pstrdup(task->pool, mime.to);
    return APR_SUCCESS;
}

/* The delay before the next attempt: 1, 5, 15, 30 minutes, then an hour. */
static apr_interval_time_t delay_after(int attempts)
{
    static const int minutes[] = {1, 5, 15, 30};
    int index = attempts - 1;

    return apr_time_from_sec(60 * (index < 4 ? minutes[index < 0 ? 0 : index] : 60));
}

apr_status_t mdl_message_unsent(mdl_task_t *task, mdl_outcome_t outcome, const char *code,
                                const char *why)
{
    task->job->error_code = code;
    task->job->error_message = why;
    task->retry_after = delay_after(task->job->attempts);
    task->outcome = outcome;
    return APR_EOF;
}

void mdl_message_send(mdl_task_t *task, mdl_message_t *message)
{
    static const struct {
        mdl_outcome_t outcome;
        const char *code;
    } meanings[] = {
        [MDL_MAIL_SENT] = {MDL_TASK_SUCCEEDED, NULL},
        [MDL_MAIL_LATER] = {MDL_TASK_RETRY, "not_accepted_yet"},
        [MDL_MAIL_UNKNOWN] = {MDL_TASK_RETRY, "result_unknown"},
        [MDL_MAIL_FAILED] = {MDL_TASK_FAILED, "refused"},
    };
    const char *detail;
    mdl_mail_outcome_t outcome;

    mdl_task_begun(task, MDL_BEGUN_WAITS);
    outcome = mdl_mailer_send(mdl_runner_mailer(task->runner), message->sender, message->to,
                              message->bytes, message->length, &detail, task->pool);

    if (outcome == MDL_MAIL_LATER &&
        (mdl_runner_stopping(task->runner) || mdl_task_withdrawn(task))) {
        mdl_runner_done(task, MDL_TASK_RELEASED);
        return;
    }
    if (outcome != MDL_MAIL_SENT) {
        mdl_log(MDL_LOG_WARNING, 0, "MDL0312: email of job %s, attempt %d: %s: %s",
                mdl_job_name(task->job, task->pool), task->job->attempts, meanings[outcome].code,
                detail);
        mdl_message_unsent(task, meanings[outcome].outcome, meanings[outcome].code, detail);
    } else {
        message->response = detail;
        mdl_log(MDL_LOG_INFO, 0, "MDL0340: email of job %s was accepted%s%s",
                mdl_job_name(task->job, task->pool), detail != NULL ? ": " : "",
                detail != NULL ? detail : "");
    }
    mdl_runner_done(task, meanings[outcome].outcome);
}
