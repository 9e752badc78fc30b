#include "ctl/maintenance.h"

#include <stddef.h>

#include <apr_time.h>

#include "base/clock.h"
#include "base/text/utf8.h"
#include "core/closed.h"
#include "core/node.h"

#define WAIT 600 /* seconds, for what still runs */
#define STEP apr_time_from_msec(200)

typedef struct {
    mdl_closed_t closed;
    mdl_closed_running_t running;
} state_t;

#define STATE(member) offsetof(state_t, member)

static const mdl_field_t fields[] = {
    {"since", MDL_FIELD_TIME, STATE(closed.since), 1, NULL},
    {"reason", MDL_FIELD_TEXT, STATE(closed.reason), 1, NULL},
    {"downloads", MDL_FIELD_NUMBER, STATE(running.downloads), 1, NULL},
    {"uploads", MDL_FIELD_NUMBER, STATE(running.uploads), 1, NULL},
    {"jobs", MDL_FIELD_NUMBER, STATE(running.jobs), 1, NULL},
    {"transactions", MDL_FIELD_NUMBER, STATE(running.transactions), 1, NULL},
    {0},
};

static apr_status_t state_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    state_t *state = arg;
    apr_status_t rv = mdl_closed_find(db, p, &state->closed);

    return rv == APR_SUCCESS ? mdl_closed_running(db, p, &state->running) : rv;
}

static apr_status_t begin_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_closed_begin(db, p, arg);
}

MDL_EFFECT(mdl_node_time, apr_time_t *)

/* On SQLite this transaction comes after those that began before everybody knew. */
static apr_status_t follow_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    (void)db, (void)p, (void)arg;
    return APR_SUCCESS;
}

static int still_runs(const mdl_closed_running_t *running)
{
    return running->downloads + running->uploads + running->jobs + running->transactions > 0;
}

/* Waits until nothing runs that was begun before the service was closed. */
static int maintenance_wait(mdl_ctl_t *ctl, state_t *state)
{
    apr_time_t until = mdl_clock_monotonic() + apr_time_from_sec(ctl->wait >= 0 ? ctl->wait : WAIT);
    mdl_problem_t problem = {0};
    apr_status_t rv;
    int told = 0;
    int failed;

    apr_sleep(MDL_CLOSED_LEARN);
    if ((failed = mdl_ctl_read(ctl, mdl_node_time_effect, &state->running.before, &problem))) {
        return failed;
    }
    if ((rv = mdl_db_settle(ctl->db, follow_effect, NULL, ctl->p)) != APR_SUCCESS) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable",
                            mdl_ctl_database_error(ctl, rv));
    }
    while (!(failed = mdl_ctl_read(ctl, state_effect, state, &problem)) &&
           still_runs(&state->running) && mdl_clock_monotonic() < until) {
        if (!told++) {
            mdl_printer_line(
                ctl->output,
                "Maintenance is on.  Waiting for what still runs: downloads %" APR_INT64_T_FMT
                ", uploads %" APR_INT64_T_FMT ", jobs %" APR_INT64_T_FMT " …",
                state->running.downloads, state->running.uploads, state->running.jobs);
            mdl_printer_finish();
        }
        apr_sleep(STEP);
    }
    return failed;
}

int mdl_ctl_maintenance_on(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    state_t state = {.closed.since = 0};
    int failed;

    if (ctl->reason != NULL && !mdl_utf8_is_text(ctl->reason, MDL_REASON_MAX)) {
        return mdl_ctl_fail(
            ctl, MDL_EXIT_USAGE, "usage",
            "A reason has 1 to " APR_STRINGIFY(MDL_REASON_MAX) " characters, in one line.");
    }
    ctl->audit.detail = ctl->reason;
    failed = mdl_ctl_settle(ctl, begin_effect, (void *)ctl->reason, &problem);
    if (failed || (failed = maintenance_wait(ctl, &state))) {
        return failed;
    }
    if (still_runs(&state.running)) {
        return mdl_ctl_fail(ctl, MDL_EXIT_PROBLEM, "still_running",
                            "Maintenance is on, but downloads, uploads or jobs still run: "
                            "downloadsctl maintenance status tells how many, and downloadsctl "
                            "maintenance on waits for them again.");
    }
    mdl_printer_result(ctl->output, fields, &state,
                       "Maintenance is on, and nothing runs any more.");
    return MDL_EXIT_DONE;
}

static apr_status_t end_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_problem_t *problem = arg;
    apr_status_t rv = mdl_closed_end(db, p, NULL);
    mdl_closed_t closed;

    if (rv == APR_ENOENT && (rv = mdl_closed_find(db, p, &closed)) == APR_SUCCESS) {
        return closed.since == 0
                   ? mdl_problem_set(problem, 404, "not_found", "Maintenance is off.")
                   : mdl_problem_set(problem, 409, "copy_unfinished",
                                     "This database is an unfinished copy: with the former "
                                     "configuration, let downloadsctl copy-database go on.");
    }
    return rv;
}

int mdl_ctl_maintenance_off(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    state_t state = {.closed.since = 0};
    int failed = mdl_ctl_settle(ctl, end_effect, &problem, &problem);

    if (!failed) {
        mdl_printer_result(ctl->output, fields, &state, "Maintenance is off.");
    }
    return failed;
}

int mdl_ctl_maintenance_status(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    state_t state = {.closed.since = 0};
    int failed = mdl_ctl_read(ctl, mdl_node_time_effect, &state.running.before, &problem);

    if (!failed && !(failed = mdl_ctl_read(ctl, state_effect, &state, &problem))) {
        mdl_printer_record(ctl->output, fields, &state);
    }
    return failed;
}
