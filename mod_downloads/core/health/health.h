/*
 * Health checks of a service that need neither root nor httpd.  Each check returns whether it
 * passes; *message gets a sentence on what to do or, if it passes, a remark.
 */
#ifndef MDL_CORE_HEALTH_HEALTH_H
#define MDL_CORE_HEALTH_HEALTH_H

#include "base/crypto.h"
#include "core/order/email.h"
#include "core/settings/settings.h"
#include "db/db.h"

#define MDL_HEALTH_TRIED 20 /* newest emails looked at */

/* The message of a check that needs a missing or faulty setting. */
#define MDL_SETTINGS_FIRST "Not tried: the settings come first."

typedef struct {
    apr_pool_t *p; /* for messages, too */
    const mdl_settings_t *settings;
    const mdl_secret_t *secret;
    mdl_db_t *db;                 /* NULL: out of reach, or has another schema */
    apr_array_header_t *warnings; /* const char *: checks add to them */
    const char *pid_file;         /* of this host's httpd; NULL: unknown */
    int httpd_runs;               /* whether it is known to run */
} mdl_health_t;

typedef int mdl_health_fn(const mdl_health_t *health, const char **message);

/** Adds a warning, unless it was added before. */
void mdl_health_warn(const mdl_health_t *health, const char *sentence);

/** A sentence on an error of the database; said is the database's message, or NULL. */
const char *mdl_health_database_error(apr_status_t rv, const char *said, apr_pool_t *p);

/** Whether the secret opens what the database has sealed. */
mdl_health_fn mdl_health_secret;

/** Whether the database can be written to; needs db. */
mdl_health_fn mdl_health_database;

/** Whether the storage folder belongs to the database and can be written to; needs the setting. */
mdl_health_fn mdl_health_storage;

/** Whether files can be imported or uploaded. */
mdl_health_fn mdl_health_imports;

/** Whether the mail server answers, and accepted recent emails. */
mdl_health_fn mdl_health_mail;

/** Whether none of the newest emails of a day was taken, of MDL_HEALTH_TRIED looked at. */
int mdl_health_mail_refused(const mdl_emails_tried_t *tried);

/** Whether the mailbox of bounces can be read. */
mdl_health_fn mdl_health_bounces;

#endif
