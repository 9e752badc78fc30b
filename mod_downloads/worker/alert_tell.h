/*
 * Tells the operator of an alert: by the log, by DownloadsAlertCommand and by an email to
 * DownloadsAlertEmail, which passes the emails that wait.
 */
#ifndef MDL_WORKER_ALERT_TELL_H
#define MDL_WORKER_ALERT_TELL_H

#include "core/health/alert.h"
#include "core/settings/settings.h"

#define MDL_ALERT_ROUNDS 256 /* with tries in the 1st, 2nd, 4th, 8th …; then nothing is tried */

typedef struct {
    const mdl_settings_t *settings;
    const char *host;            /* this one's */
    int (*stopped)(void *baton); /* whether the process ends: what was not told yet waits */
    void *baton;
} mdl_alert_teller_t;

/** Tells what was not told yet, if this round has a try, and updates command_told and email_told.
    Blocks for as long as a program or a mail server takes; either has a limit of time. */
void mdl_alert_tell(const mdl_alert_teller_t *teller, mdl_alert_t *alert, apr_pool_t *p);

#endif
