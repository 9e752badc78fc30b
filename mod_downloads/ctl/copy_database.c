#include "ctl/copy_database.h"

#include <stddef.h>
#include <string.h>

#include <apr_strings.h>

#include "core/closed.h"
#include "core/shop/event.h"
#include "ctl/progress.h"
#include "db/copy.h"
#include "db/migrate.h"

typedef struct {
    mdl_ctl_t *ctl;
    mdl_db_t *to;
    mdl_copy_t *copy;
    mdl_closed_t closed; /* of the source */
    const char *of;      /* what the target becomes a copy of */
    int tables;
    apr_int64_t copied; /* rows, in this run */
    apr_int64_t rows;   /* compared */
    mdl_ctl_progress_t progress;
    apr_int64_t done; /* rows, of the progress */
} copying_t;

static const mdl_field_t fields[] = {
    {"tables", MDL_FIELD_INT, offsetof(copying_t, tables), 1, NULL},
    {"copied", MDL_FIELD_NUMBER, offsetof(copying_t, copied), 1, NULL},
    {"rows", MDL_FIELD_NUMBER, offsetof(copying_t, rows), 1, NULL},
    {0},
};

static int copy_refuse(const copying_t *copying, const char *code, const char *message)
{
    return mdl_ctl_fail(copying->ctl, MDL_EXIT_REFUSED, code, message);
}

/* An error of the target's; the source's are mdl_ctl_read's. */
static int copy_fail(const copying_t *copying, apr_status_t rv)
{
    return mdl_ctl_fail(copying->ctl, MDL_EXIT_DATABASE, "database_unavailable",
                        mdl_health_database_error(rv, mdl_db_error(copying->to), copying->ctl->p));
}

/* --- the source --- */

typedef struct {
    copying_t *copying;
    mdl_closed_running_t running;
    const char *feed;
} source_t;

static apr_status_t source_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    source_t *source = arg;
    apr_status_t rv = mdl_closed_find(db, p, &source->copying->closed);

    if (rv == APR_SUCCESS) {
        source->running.before = source->copying->closed.since + MDL_CLOSED_LEARN;
        rv = mdl_closed_running(db, p, &source->running);
    }
    return rv == APR_SUCCESS ? mdl_event_feed(db, p, &source->feed) : rv;
}

static int source_check(copying_t *copying)
{
    source_t source = {.copying = copying};
    mdl_problem_t problem = {0};
    int failed = mdl_ctl_read(copying->ctl, source_effect, &source, &problem);

    if (failed) {
        return failed;
    }
    if (copying->closed.since == 0) {
        return copy_refuse(copying, "maintenance_off",
                           "Rows would change meanwhile: first run downloadsctl maintenance on.");
    }
    if (source.running.downloads + source.running.uploads + source.running.jobs +
            source.running.transactions >
        0) {
        return copy_refuse(copying, "still_running",
                           "Downloads, uploads, jobs or transactions still run: downloadsctl "
                           "maintenance on waits for them.");
    }
    if (source.running.backups > 0) {
        return copy_refuse(copying, "still_running",
                           "A backup runs: wait until it has ended, or an hour if it was killed.");
    }
    copying->of = apr_psprintf(copying->ctl->p, "%s at %" APR_INT64_T_FMT, source.feed,
                               copying->closed.since);
    return MDL_EXIT_DONE;
}

/* --- the target --- */

static int target_open(copying_t *copying)
{
    mdl_ctl_t *ctl = copying->ctl;
    const mdl_settings_t *settings = ctl->settings;
    const char *why;
    int applied;
    apr_status_t rv;

    if (strcmp(ctl->arguments[0], settings->db_driver) == 0 &&
        strcmp(ctl->arguments[1], settings->db_params) == 0) {
        return copy_refuse(copying, "same_database", "This is the database that the service has.");
    }
    rv = mdl_db_open(&copying->to, ctl->arguments[0], ctl->arguments[1], &why, ctl->p);
    if (rv != APR_SUCCESS) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable", why);
    }
    mdl_db_ignore_references(copying->to);
    rv = mdl_migrate(copying->to, &applied, ctl->p);
    return rv == APR_SUCCESS ? MDL_EXIT_DONE : copy_fail(copying, rv);
}

MDL_EFFECT(mdl_closed_find, mdl_closed_t *)

static apr_status_t target_begin_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_closed_copy_begin(db, p, arg);
}

static apr_status_t nothing_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    (void)db, (void)p, (void)arg;
    return APR_SUCCESS;
}

/* The audit entry is copied, too. */
static int target_begin(copying_t *copying)
{
    mdl_ctl_t *ctl = copying->ctl;
    mdl_closed_t begun = copying->closed;
    mdl_problem_t problem = {0};
    const char *table;
    apr_status_t rv = mdl_copy_find_rows(copying->copy, &table, ctl->p);
    int failed;

    if (rv != APR_SUCCESS) {
        return copy_fail(copying, rv);
    }
    if (table != NULL) {
        return copy_refuse(copying, "target_not_empty",
                           apr_psprintf(ctl->p, "The target is not empty: %s has rows.", table));
    }
    if ((failed = mdl_ctl_settle(ctl, nothing_effect, NULL, &problem))) {
        return failed;
    }
    begun.copy_of = copying->of;
    if ((rv = mdl_copy_clear(copying->copy, ctl->p)) == APR_SUCCESS) {
        rv = mdl_db_write(copying->to, target_begin_effect, &begun, ctl->p);
    }
    return rv == APR_SUCCESS ? MDL_EXIT_DONE : copy_fail(copying, rv);
}

/* Begins the copy, or finds it begun. */
static int target_check(copying_t *copying)
{
    mdl_closed_t closed;
    apr_status_t rv = mdl_db_read(copying->to, mdl_closed_find_effect, &closed, copying->ctl->p);

    if (rv != APR_SUCCESS) {
        return copy_fail(copying, rv);
    }
    if (closed.since == 0) {
        return target_begin(copying);
    }
    return closed.copy_of != NULL && strcmp(closed.copy_of, copying->of) == 0
               ? MDL_EXIT_DONE
               : copy_refuse(copying, "target_not_empty",
                             closed.copy_of != NULL
                                 ? "The target is an unfinished copy of another state: empty it."
                                 : "The target is a service's database.");
}

/* --- the copy --- */

static void copying_step(void *baton, int rows)
{
    copying_t *copying = baton;

    copying->done += rows;
    mdl_ctl_progress_tell(&copying->progress, copying->done);
}

/* All rows are counted, which takes a while, so only for somebody who looks. */
static void progress_begin(copying_t *copying, const char *what, int resumes)
{
    apr_pool_t *p = copying->ctl->p;
    apr_int64_t total;

    copying->done = 0;
    if (mdl_ctl_progress_shown(copying->ctl) &&
        mdl_copy_count(copying->copy, 0, &total, p) == APR_SUCCESS &&
        (!resumes || mdl_copy_count(copying->copy, 1, &copying->done, p) == APR_SUCCESS)) {
        copying->progress = mdl_ctl_progress_begin(copying->ctl, what, total);
        mdl_copy_watch(copying->copy, copying_step, copying);
    }
}

static int tables_copy(copying_t *copying)
{
    progress_begin(copying, "rows", 1);
    for (int i = 0; i < copying->tables; i++) {
        apr_int64_t rows;
        apr_status_t rv = mdl_copy_rows(copying->copy, i, &rows, copying->ctl->p);

        if (rv != APR_SUCCESS) {
            return copy_fail(copying, rv);
        }
        copying->copied += rows;
        if (rows > 0) {
            mdl_ctl_progress_clear(&copying->progress);
            mdl_printer_line(copying->ctl->output, "%s: %" APR_INT64_T_FMT " rows copied",
                             mdl_copy_table_name(copying->copy, i), rows);
            mdl_printer_finish();
        }
    }
    return MDL_EXIT_DONE;
}

static int tables_compare(copying_t *copying)
{
    progress_begin(copying, "rows compared", 0);
    for (int i = 0; i < copying->tables; i++) {
        const char *different;
        apr_int64_t rows;
        apr_status_t rv = mdl_copy_compare(copying->copy, i, &rows, &different, copying->ctl->p);

        if (rv != APR_SUCCESS) {
            return copy_fail(copying, rv);
        }
        if (different != NULL) {
            return mdl_ctl_fail(copying->ctl, MDL_EXIT_PROBLEM, "copy_differs",
                                apr_psprintf(copying->ctl->p,
                                             "The copy is not the same: %s differs at %s.  Empty "
                                             "the target, and copy again.",
                                             mdl_copy_table_name(copying->copy, i), different));
        }
        copying->rows += rows;
    }
    return MDL_EXIT_DONE;
}

static int references_check(const copying_t *copying)
{
    const char *table;
    apr_status_t rv = mdl_copy_check_references(copying->copy, &table, copying->ctl->p);

    if (rv != APR_SUCCESS) {
        return copy_fail(copying, rv);
    }
    return table == NULL
               ? MDL_EXIT_DONE
               : mdl_ctl_fail(copying->ctl, MDL_EXIT_PROBLEM, "reference_missing",
                              apr_psprintf(copying->ctl->p,
                                           "A row of %s refers to one that is not there.", table));
}

/* The service must have been closed all the time. */
static int copy_finish(copying_t *copying)
{
    apr_time_t since = copying->closed.since;
    apr_status_t rv;
    int failed = source_check(copying);

    if (failed) {
        return failed;
    }
    if (copying->closed.since != since) {
        return copy_refuse(copying, "maintenance_off",
                           "Maintenance was off for a while: empty the target, and copy again.");
    }
    rv = mdl_db_write(copying->to, mdl_closed_copy_end, NULL, copying->ctl->p);
    if (rv != APR_SUCCESS) {
        return copy_fail(copying, rv);
    }
    mdl_printer_result(copying->ctl->output, fields, copying,
                       "All %" APR_INT64_T_FMT " rows of %d tables are the same in both.  Put the "
                       "new database into DBDriver and DBDParams, restart httpd, and run "
                       "downloadsctl maintenance off.",
                       copying->rows, copying->tables);
    return MDL_EXIT_DONE;
}

int mdl_ctl_copy_database(mdl_ctl_t *ctl)
{
    copying_t copying = {.ctl = ctl};
    const char *why = NULL;
    apr_status_t rv;
    int failed;

    if ((failed = source_check(&copying)) || (failed = target_open(&copying))) {
        return failed;
    }
    rv = mdl_copy_create(&copying.copy, ctl->db, copying.to, &why, ctl->p);
    if (rv != APR_SUCCESS) {
        return why != NULL ? copy_refuse(&copying, "other_schema", why) : copy_fail(&copying, rv);
    }
    copying.tables = mdl_copy_tables(copying.copy);
    failed = target_check(&copying);
    failed = failed ? failed : tables_copy(&copying);
    failed = failed ? failed : tables_compare(&copying);
    mdl_ctl_progress_clear(&copying.progress);
    failed = failed ? failed : references_check(&copying);
    if (failed) {
        return failed;
    }
    return copy_finish(&copying);
}
