/*
 * Whether a service is well, as far as neither root nor httpd is needed to tell.  Each check
 * returns whether it is; *message gets a sentence on what to do or, if all is well, a remark.
 */
#ifndef MDL_CORE_HEALTH_HEALTH_H
#define MDL_CORE_HEALTH_HEALTH_H

#include "base/crypto.h"
#include "core/settings/settings.h"
#include "db/db.h"

/* Reported in place of a check that needs a missing or faulty setting. */
#define MDL_SETTINGS_FIRST "Not tried: the settings come first."

typedef struct {
    apr_pool_t *p; /* of the messages, too */
    const mdl_settings_t *settings;
    const mdl_secret_t *secret;
    mdl_db_t *db;                 /* NULL: it can't be asked, or has another schema */
    apr_array_header_t *warnings; /* const char *: checks add to them */
    const char *pid_file;         /* of this host's httpd; NULL: not known */
    int httpd_runs;               /* it does, as far as that is known */
} mdl_health_t;

typedef int mdl_health_fn(const mdl_health_t *of, const char **message);

/** Adds a warning, unless it is among them. */
void mdl_health_warn(const mdl_health_t *of, const char *sentence);

/** A sentence on an error of the database, with what the database said (or NULL). */
const char *mdl_health_database_error(apr_status_t rv, const char *said, apr_pool_t *p);

/** Whether what is sealed in the database can be opened by the secret. */
mdl_health_fn mdl_health_secret;

/** Whether it can be written to; db must be there. */
mdl_health_fn mdl_health_database;

/** Whether the folder, which is set, is the database's and can be written to. */
mdl_health_fn mdl_health_storage;

/** Whether files can get in; uploads alone will do. */
mdl_health_fn mdl_health_imports;

/** Whether the mail server takes emails, and those of late were. */
mdl_health_fn mdl_health_mail;

/** Whether the mailbox of bounces can be read. */
mdl_health_fn mdl_health_bounces;

#endif
