#include "worker/alert_tell.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/http/client.h"
#include "base/log.h"
#include "base/mail/mailer.h"
#include "base/mail/mime.h"
#include "base/program.h"
#include "base/text/html_escape.h"
#include "base/ulid.h"

#define LEAST_PATIENCE apr_time_from_sec(10)

static const char *alert_state(const mdl_alert_t *alert)
{
    return alert->failing ? "failed" : "well";
}

/* One sentence or more, in English like those of `downloadsctl check`. */
static const char *alert_sentence(const mdl_alert_t *alert, apr_pool_t *p)
{
    return alert->failing ? alert->words
                          : apr_pstrcat(p, "Well again.  It was: ", alert->words, NULL);
}

/* --- the command --- */

static const char *end_fault(const mdl_program_end_t *end, apr_pool_t *p)
{
    if (end->killed) {
        return "it did not end in time and was killed";
    }
    if (!WIFEXITED(end->status)) {
        return apr_psprintf(p, "signal %d ended it", WTERMSIG(end->status));
    }
    if (WEXITSTATUS(end->status) != 0) {
        return apr_psprintf(p, "it ended with code %d%s%s", WEXITSTATUS(end->status),
                            *end->last != '\0' ? ": " : "", end->last);
    }
    return NULL;
}

/* NULL, or why the command has not told. */
static const char *command_run(const mdl_alert_teller_t *teller, const mdl_alert_t *alert,
                               apr_pool_t *p)
{
    const mdl_settings_t *settings = teller->settings;
    const char *const arguments[] = {settings->alert_command, alert->name, alert_state(alert),
                                     alert_sentence(alert, p), NULL};
    apr_interval_time_t patience = settings->alert_interval;
    mdl_program_t program = {.arguments = arguments,
                             .input = open("/dev/null", O_RDONLY | O_CLOEXEC),
                             .patience = patience > LEAST_PATIENCE ? patience : LEAST_PATIENCE,
                             .stopped = teller->stopped,
                             .baton = teller->baton};
    mdl_program_end_t end;
    apr_status_t rv;
    char text[120];

    if (program.input < 0) {
        return apr_pstrdup(p, apr_strerror(errno, text, sizeof text));
    }
    rv = mdl_program_run(&end, &program, p);
    close(program.input);
    return rv == APR_SUCCESS ? end_fault(&end, p)
                             : apr_pstrdup(p, apr_strerror(rv, text, sizeof text));
}

/* --- the email --- */

static void html_write(const void *baton, mdl_text_buffer_t *out)
{
    mdl_text_buffer_put(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                             "<title>Alert</title></head>\n<body><p>");
    mdl_html_escape(out, baton);
    mdl_text_buffer_put(out, "</p></body></html>\n");
}

static const char *email_text(const mdl_alert_teller_t *teller, const mdl_alert_t *alert,
                              apr_pool_t *p)
{
    return apr_psprintf(p, "%s\n\n%s \"%s\" of `downloadsctl check` at %s%s\n",
                        alert_sentence(alert, p), "This is about the line", alert->name,
                        *alert->host != '\0' ? alert->host : teller->host,
                        alert->failing ? ".  One more email comes when it is well again." : ".");
}

static apr_status_t email_build(const char **message, apr_size_t *length,
                                const mdl_alert_teller_t *teller, const mdl_alert_t *alert,
                                apr_pool_t *p)
{
    const mdl_settings_t *settings = teller->settings;
    const char *text = email_text(teller, alert, p);
    const mdl_mime_mail_t mail = {
        .from_name = "mod_downloads",
        .from = settings->mail_from,
        .to = settings->alert_email,
        .subject = apr_psprintf(p, "%s: %s %s", mdl_settings_public_host(settings, p), alert->name,
                                alert_state(alert)),
        .message_id = apr_pstrcat(p, mdl_ulid("", p), strchr(settings->mail_from, '@'), NULL),
        .date = apr_time_now(),
        .text = mdl_mime_body_of(text),
        .html = {html_write, text}};

    return mdl_mime_build(message, length, &mail, p);
}

/* NULL, or why no email has told. */
static const char *email_send(const mdl_alert_teller_t *teller, const mdl_alert_t *alert,
                              apr_pool_t *p)
{
    const mdl_settings_t *settings = teller->settings;
    mdl_mail_config_t config = settings->mail;
    const char *message, *detail;
    mdl_mailer_t *mailer;
    apr_size_t length;

    config.stopped = teller->stopped;
    config.baton = teller->baton;
    if (email_build(&message, &length, teller, alert, p) != APR_SUCCESS ||
        mdl_http_global_init(p) != APR_SUCCESS ||
        mdl_mailer_create(&mailer, &config, p) != APR_SUCCESS) {
        return "the mailer can't be set up";
    }
    return mdl_mailer_send(mailer, settings->mail_from, settings->alert_email, message, length,
                           &detail, p) == MDL_MAIL_SENT
               ? NULL
               : detail;
}

/* --- both --- */

typedef const char *tell_fn(const mdl_alert_teller_t *teller, const mdl_alert_t *alert,
                            apr_pool_t *p);

/* The state that is told then. */
static int tell_by(tell_fn *tell, const char *directive, int told, const mdl_alert_teller_t *teller,
                   const mdl_alert_t *alert, apr_pool_t *p)
{
    int last = alert->rounds >= MDL_ALERT_ROUNDS;
    const char *why;

    if (told == alert->failing || (why = tell(teller, alert, p)) == NULL) {
        return alert->failing;
    }
    if (!teller->stopped(teller->baton)) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0392: %s could not tell of \"%s %s\": %s; %s", directive,
                alert->name, alert_state(alert), why,
                last ? "it is not tried again" : "it is tried again");
    }
    return last ? alert->failing : told;
}

static void alert_log(const mdl_alert_t *alert)
{
    if (alert->failing) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0390: alert: %s failed: %s", alert->name, alert->words);
    } else {
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0391: alert: %s is well again", alert->name);
    }
}

void mdl_alert_tell(const mdl_alert_teller_t *teller, mdl_alert_t *alert, apr_pool_t *p)
{
    const mdl_settings_t *settings = teller->settings;

    if (alert->rounds == 1) {
        alert_log(alert);
    }
    if ((alert->rounds & (alert->rounds - 1)) != 0) {
        return;
    }
    alert->command_told = settings->alert_command == NULL
                              ? alert->failing
                              : tell_by(command_run, "DownloadsAlertCommand", alert->command_told,
                                        teller, alert, p);
    alert->email_told = settings->alert_email == NULL
                            ? alert->failing
                            : tell_by(email_send, "DownloadsAlertEmail", alert->email_told, teller,
                                      alert, p);
}
