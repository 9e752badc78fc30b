#include "ctl/mail.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include <apr_signal.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/client.h"
#include "base/mail/mailer.h"
#include "base/mail/mime.h"
#include "base/ulid.h"
#include "core/job.h"

#define BATCH 1000 /* emails in a transaction */

static const char text[] =
    "This is a test: mod_downloads can send email with these settings.\n"
    "\n"
    "It was asked for by `downloadsctl mail test`. Nobody needs to answer.\n";

static const char html[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Test</title></head>\n"
    "<body><p>This is a test: mod_downloads can send email with these settings.</p>\n"
    "<p>It was asked for by <code>downloadsctl mail test</code>. Nobody needs to answer.</p>\n"
    "</body></html>\n";

typedef struct {
    const char *to;
    const char *transport;
    const char *message_id;
    const char *response; /* of the mail server, or NULL */
} sent_t;

static const mdl_field_t fields[] = {
    {"to", MDL_FIELD_TEXT, offsetof(sent_t, to), 1, NULL},
    {"transport", MDL_FIELD_TEXT, offsetof(sent_t, transport), 1, NULL},
    {"message_id", MDL_FIELD_TEXT, offsetof(sent_t, message_id), 1, NULL},
    {"answer", MDL_FIELD_TEXT, offsetof(sent_t, response), 1, NULL},
    {0},
};

static int mail_report(mdl_ctl_t *ctl, mdl_mail_outcome_t outcome, const sent_t *sent)
{
    if (outcome == MDL_MAIL_SENT) {
        mdl_printer_result(ctl->output, fields, sent, "%s took the email to %s%s%s",
                           sent->transport, sent->to, sent->response != NULL ? ": " : ".",
                           sent->response != NULL ? sent->response : "");
        return MDL_EXIT_DONE;
    }
    if (outcome == MDL_MAIL_FAILED) {
        return mdl_ctl_fail(ctl, MDL_EXIT_REFUSED, "refused", sent->response);
    }
    return mdl_ctl_fail(ctl, MDL_EXIT_PROBLEM,
                        outcome == MDL_MAIL_UNKNOWN ? "result_unknown" : "not_accepted_yet",
                        sent->response);
}

int mdl_ctl_mail_test(mdl_ctl_t *ctl)
{
    const mdl_settings_t *settings = ctl->settings;
    sent_t sent = {.to = mdl_mime_address_of(ctl->arguments[0], ctl->p),
                   .transport = settings->mail.transport};
    mdl_mime_mail_t mail = {.from_name = "mod_downloads",
                            .from = settings->mail_from,
                            .to = sent.to,
                            .subject = "Test of the email settings",
                            .date = apr_time_now(),
                            .text = mdl_mime_body_of(text),
                            .html = mdl_mime_body_of(html)};
    mdl_mail_outcome_t outcome;
    mdl_mailer_t *mailer;
    const char *message;
    apr_size_t length;

    if (sent.to == NULL) {
        return mdl_ctl_fail(ctl, MDL_EXIT_REFUSED, "invalid_request",
                            "The recipient is not an address.");
    }
    sent.message_id = apr_pstrcat(ctl->p, mdl_ulid("", ctl->p), strchr(settings->mail_from, '@'),
                                  NULL);
    mail.message_id = sent.message_id;
    apr_signal(SIGPIPE, SIG_IGN);
    if (mdl_mime_build(&message, &length, &mail, ctl->p) != APR_SUCCESS ||
        mdl_http_global_init(ctl->p) != APR_SUCCESS ||
        mdl_mailer_create(&mailer, &settings->mail, ctl->p) != APR_SUCCESS) {
        return mdl_ctl_fail(ctl, MDL_EXIT_PROBLEM, "internal_error", "The mailer can't be set up.");
    }
    outcome = mdl_mailer_send(mailer, settings->mail_from, sent.to, message, length, &sent.response,
                              ctl->p);
    return mail_report(ctl, outcome, &sent);
}

static const mdl_field_t flush_fields[] = {
    {"flushed", MDL_FIELD_NUMBER, offsetof(mdl_job_flush_t, flushed), 1, NULL},
    {0},
};

typedef struct {
    mdl_job_flush_t flush;
    mdl_ctl_t *ctl;
} flush_t;

/* Writes no audit entry if nothing changed. */
static apr_status_t mail_flush_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    flush_t *flush = arg;
    apr_status_t rv = mdl_job_flush(db, p, &flush->flush);

    if (rv != APR_SUCCESS || flush->flush.flushed == 0) {
        return rv;
    }
    flush->ctl->audit.detail = apr_psprintf(p, "%" APR_INT64_T_FMT, flush->flush.flushed);
    return mdl_audit_add(db, &flush->ctl->audit, p);
}

int mdl_ctl_mail_flush(mdl_ctl_t *ctl)
{
    flush_t step = {.flush = {.limit = BATCH}, .ctl = ctl};
    mdl_job_flush_t all = {0};
    int failed;

    do {
        failed = mdl_ctl_write_on(ctl, mail_flush_effect, &step, NULL);
        all.flushed += failed ? 0 : step.flush.flushed;
    } while (!failed && step.flush.flushed == BATCH);
    if (!failed) {
        mdl_printer_result(ctl->output, flush_fields, &all,
                           "%" APR_INT64_T_FMT " email%s not wait any longer.", all.flushed,
                           all.flushed == 1 ? " does" : "s do");
    }
    return failed;
}
