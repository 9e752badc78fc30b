/*
 * Shared by the commands of downloadsctl: settings, arguments, database, exit codes.  A command is
 * a function that gets this context, prints its result and returns an exit code.
 */
#ifndef MDL_CTL_COMMAND_H
#define MDL_CTL_COMMAND_H

#include <apr_pools.h>
#include <apr_tables.h>

#include "base/crypto.h"
#include "core/audit.h"
#include "core/health/health.h"
#include "core/problem.h"
#include "core/settings/settings.h"
#include "platform/risk.h"
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

#define MDL_CTL_SHOWN      50 /* lines of a list, without --limit */
#define MDL_CTL_SHOWN_MOST 10000
#define MDL_CTL_KEEP       (-2) /* of a number that -1 clears: not given */

typedef struct {
    apr_pool_t *p;
    mdl_printer_t *output;

    /* The configuration and its faults. */
    const char *file;
    int file_given; /* by -f */
    mdl_settings_t *settings;
    apr_array_header_t *problems; /* const char *, like the warnings */
    apr_array_header_t *warnings;
    mdl_secret_t *secret;
    const char *no_secret; /* why the secret could not be read, else NULL */
    const char *no_owner;  /* why root could not become another user (ctl/owner.h), else NULL */

    int quiet; /* only what was asked for, and what is wrong */

    /* For check: the httpd's command (NULL: mdl_httpd_command()) and its report. */
    const char *httpd;
    mdl_httpd_report_t report;
    mdl_health_t health;

    mdl_db_t *db; /* NULL until first used */

    /* The audit entry of a command that changes something: noun and verb, the user, the first
       argument as noun_id, the shop given.  The command or its effect may add to it. */
    mdl_audit_t audit;

    /* The parsed command line. */
    const char *const *arguments; /* the arguments, without the options */
    apr_int64_t id;               /* the first argument, if the command takes a number */
    const char *name;             /* options: NULL or 0 when not given */
    const char *email;
    const char *key_name;
    const char *scope;
    const char *status;
    const char *reason;
    apr_int64_t shop_id;
    apr_int64_t expires_s;
    const char *sender_name;
    const char *reply_to;
    const char *withdrawal_url;
    int mail_delay;     /* minutes; -1 when not given */
    mdl_risk_t hold_at; /* MDL_RISK_NONE when not given */
    int declaration;    /* MDL_CTL_KEEP when not given */
    int help_requests;  /* mdl_shop_help_t; MDL_CTL_KEEP when not given */
    int download_limit; /* -1: none; MDL_CTL_KEEP when not given, like access_days */
    int access_days;
    const char *languages;
    const char *storefront;
    const char *storefront_token;
    int limit;        /* 0 when not given */
    const char *type; /* of jobs */
    apr_time_t since;
    int dry_run; /* given */
    int full;    /* given, like repair */
    int repair;
    int keep;                 /* 0 when not given */
    const char *secret_file;  /* where backup copies the secret; NULL when not given */
    const char *secret_fault; /* why it did not, else NULL */
    int send_emails;
    int jobs;         /* 0 when not given, like rate */
    apr_int64_t rate; /* bytes a second */
    int wait;         /* seconds; -1 when not given */
} mdl_ctl_t;

/** The name of the user who ran the program, or who ran sudo. */
const char *mdl_ctl_user(apr_pool_t *p);

/** Reads the configuration and the secret, then gives up root.  Call it before using the database.
    Errors are in problems, no_secret and no_owner. */
void mdl_ctl_configure(mdl_ctl_t *ctl);

/** Prints an error and returns the exit code. */
int mdl_ctl_fail(mdl_ctl_t *ctl, int exit_code, const char *code, const char *message);

/** Connects if necessary.  Returns an exit code; *why gets a sentence unless that is
    MDL_EXIT_DONE. */
int mdl_ctl_connect(mdl_ctl_t *ctl, const char **why);

/** Connects and reads the schema's version, 0 for an empty database; else like
 * mdl_ctl_check_schema.
 */
int mdl_ctl_read_version(mdl_ctl_t *ctl, int *version, const char **why);

/**
 * Connects and compares the schema's version with this program's.  Returns as mdl_ctl_connect does.
 * A missing SQLite file counts as an empty database and is not created.
 */
int mdl_ctl_check_schema(mdl_ctl_t *ctl, int *version, const char **why);

/** A sentence, behind two spaces, on the builds that run on this program's schema. */
const char *mdl_ctl_runs_with(apr_pool_t *p);

/** A sentence about a database error, with the database's message. */
const char *mdl_ctl_database_error(const mdl_ctl_t *ctl, apr_status_t rv);

/**
 * Checks the schema's version, then runs an effect in a transaction and writes ctl->audit in it.
 * Prints errors and returns the exit code; problem is where the effect leaves its problem.
 */
int mdl_ctl_write(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem);

/** mdl_ctl_write, also during maintenance. */
int mdl_ctl_settle(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem);

/** Runs a further transaction of a change that mdl_ctl_write began. */
int mdl_ctl_write_on(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem);

/** Like mdl_ctl_write, but without a transaction, for an effect that only reads. */
int mdl_ctl_read(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem);

/** Refuses an unknown shop, 404 not_found; 0 stands for all shops. */
apr_status_t mdl_ctl_check_shop(mdl_db_t *db, apr_int64_t shop_id, mdl_problem_t *problem,
                                apr_pool_t *p);

/** A copy of the context for one of many steps, with p as its pool.  Must be connected
    (mdl_ctl_connect). */
mdl_ctl_t mdl_ctl_step(const mdl_ctl_t *ctl, apr_pool_t *p);

/** Waits until this node's key caches have expired (core/shop/key_cache.h). */
void mdl_ctl_await_key_caches(void);

#endif
