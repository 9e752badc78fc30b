/*
 * What the commands of downloadsctl share: the settings, the arguments, the database, the ways to
 * end.  A command is a function of its context that prints its result and returns an exit code.
 */
#ifndef MDL_CTL_COMMAND_H
#define MDL_CTL_COMMAND_H

#include <apr_pools.h>
#include <apr_tables.h>

#include "base/crypto.h"
#include "core/problem.h"
#include "core/settings/settings.h"
#include "core/shop/risk.h"
#include "ctl/httpd.h"
#include "ctl/printer.h"
#include "db/db.h"

/* downloadsctl(8), EXIT STATUS */
#define MDL_EXIT_DONE          0
#define MDL_EXIT_USAGE         1
#define MDL_EXIT_CONFIGURATION 2
#define MDL_EXIT_DATABASE      3
#define MDL_EXIT_ABSENT        4
#define MDL_EXIT_REFUSED       5
#define MDL_EXIT_PROBLEM       6
#define MDL_EXIT_OUTPUT        7

/* Why something was not tried that needs a setting which is missing or faulty. */
#define MDL_SETTINGS_FIRST "Not tried: the settings come first."

typedef struct {
    apr_pool_t *p;
    mdl_printer_t *output;

    /* The configuration, and what is wrong with it in sentences. */
    const char *file;
    int file_given; /* by -f */
    mdl_settings_t *settings;
    apr_array_header_t *problems; /* const char *, these two */
    apr_array_header_t *warnings;
    mdl_secret_t *secret;
    const char *no_secret; /* why it could not be read, else NULL */
    const char *no_owner;  /* why root could not become the storage folder's owner, else NULL */

    /* For check: the command of the httpd to ask, NULL for the usual one, and what it said.
     */
    const char *httpd;
    mdl_httpd_report_t report;

    mdl_db_t *db; /* NULL until first used */

    /* The command line, checked. */
    const char *const *arguments; /* the arguments that are no options */
    apr_int64_t id;               /* the first of them, for a command that takes a number */
    const char *name;             /* options: NULL or 0 when not given */
    const char *email;
    const char *scope;
    const char *status;
    apr_int64_t shop_id;
    apr_int64_t expires_s;
    const char *sender_name;
    const char *reply_to;
    int mail_delay;     /* minutes; -1 when not given */
    mdl_risk_t hold_at; /* MDL_RISK_NONE when not given */
    const char *storefront;
    const char *storefront_token;
} mdl_ctl_t;

/** Reads the configuration and the secret, and gives up root; only then the database may be used.
    What goes wrong is left in problems, no_secret and no_owner. */
void mdl_ctl_configure(mdl_ctl_t *ctl);

/** Tells an error and returns the exit code. */
int mdl_ctl_fail(mdl_ctl_t *ctl, int exit_code, const char *code, const char *message);

/** Connects, unless that has been done.  Returns an exit code, and but for MDL_EXIT_DONE a sentence
    in *why. */
int mdl_ctl_connect(mdl_ctl_t *ctl, const char **why);

/**
 * Connects and compares the schema with this program's: exit code and sentence as above.  A file
 * that SQLite would have to make counts as an empty database, and is not made.
 */
int mdl_ctl_check_schema(mdl_ctl_t *ctl, int *version, const char **why);

/** A sentence for what the db layer returned, with what the database said. */
const char *mdl_ctl_database_error(const mdl_ctl_t *ctl, apr_status_t rv);

/**
 * Runs an effect in a transaction, once the schema is known to be this program's.  Tells what goes
 * wrong and returns the exit code; problem is the one in arg.
 */
int mdl_ctl_write(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem);

/** The same without a transaction, for an effect that reads. */
int mdl_ctl_read(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem);

/** Waits until no process of this node trusts what it remembers of keys (core/shop/key_cache.h). */
void mdl_ctl_await_key_caches(void);

#endif
