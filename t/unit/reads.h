/*
 * How much the statements of a request read: rows and pages on PostgreSQL, steps on SQLite.
 */
#ifndef MDL_T_UNIT_READS_H
#define MDL_T_UNIT_READS_H

#include "t/unit/seed.h"

#include <jansson.h>

#include "db/private.h"
#include "t/unit/fixtures.h"

/* The most that a statement may read; a list of 25 orders with their parts has a thousand rows. */
#define MAX_ROWS    1000
#define MAX_BUFFERS 3000  /* of PostgreSQL, 8 KB each */
#define MAX_STEPS   30000 /* of SQLite's virtual machine */

static mdl_db_t *db;
static int rows;
static const char *too_much; /* lines about statements of the current request that read too much */
static int statements;       /* checked */
static int allowance = 1;    /* a factor of what the request's statements may read */

static void note_too_much(const char *label, apr_int64_t read, apr_int64_t most, const char *what)
{
    statements++;
    if (read > most * allowance) {
        too_much = apr_psprintf(db->pool, "%s#   %s: %" APR_INT64_T_FMT " %s\n", too_much, label,
                                read, what);
    }
}

/* --- PostgreSQL: auto_explain sends each plan as a warning --- */

static apr_int64_t node_number(const json_t *node, const char *name)
{
    return (apr_int64_t)json_number_value(json_object_get(node, name));
}

/* The rows that a plan's scans of tables and indexes have read. */
static apr_int64_t plan_rows(const json_t *node)
{
    apr_int64_t loops = node_number(node, "Actual Loops");
    apr_int64_t read = 0;
    size_t i;
    json_t *child;

    if (json_object_get(node, "Relation Name") != NULL || json_object_get(node, "Index Name")) {
        read = loops *
               (node_number(node, "Actual Rows") + node_number(node, "Rows Removed by Filter") +
                node_number(node, "Rows Removed by Index Recheck"));
    }
    json_array_foreach(json_object_get(node, "Plans"), i, child)
    {
        read += plan_rows(child);
    }
    return read;
}

static const char *label_of(const char *sql)
{
    for (mdl_statement_t i = 0; i < MDL_Q_COUNT; i++) {
        if (strcmp(mdl_statements[i].text[MDL_PGSQL], sql) == 0) {
            return mdl_statements[i].label;
        }
    }
    return sql; /* the statement of a foreign key */
}

static void read_plan(void *data, const PGresult *notice)
{
    const char *message = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    const char *document = strchr(message, '{');
    json_t *plan = document != NULL ? json_loads(document, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const json_t *node = json_object_get(plan, "Plan");
    const char *label;

    (void)data;
    if (plan == NULL) {
        printf("# %s\n", message);
        return;
    }
    label = label_of(json_string_value(json_object_get(plan, "Query Text")));
    note_too_much(label, plan_rows(node), MAX_ROWS, "rows");
    note_too_much(label,
                  node_number(node, "Shared Hit Blocks") + node_number(node, "Shared Read Blocks"),
                  MAX_BUFFERS, "buffers");
    json_decref(plan);
}

static void begin_pgsql(void)
{
    /* The test's own changes may take long. */
    mdl_db_limit_waits(db, 0);
    mdl_db_command(db, "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;"
                       "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
                       "SET auto_explain.log_analyze = on; SET auto_explain.log_buffers = on;"
                       "SET auto_explain.log_timing = off; SET auto_explain.log_format = json;"
                       "SET auto_explain.log_nested_statements = on;"
                       "SET auto_explain.log_level = warning");
    PQsetNoticeReceiver(apr_dbd_native_handle(db->driver, db->handle), read_plan, NULL);
}

/* --- SQLite: statements count their steps --- */

static void read_steps(const mdl_db_t *ran_on)
{
    for (mdl_statement_t i = 0; i < MDL_Q_COUNT; i++) {
        int steps = ran_on->prepared[i] == NULL
                        ? 0
                        : sqlite3_stmt_status(ran_on->prepared[i], SQLITE_STMTSTATUS_VM_STEP, 1);

        if (steps > 0) {
            note_too_much(mdl_statements[i].label, steps, MAX_STEPS, "steps");
        }
    }
}

/* --- the requests --- */

typedef struct {
    mdl_effect_fn *effect;
    void *arg;
    const mdl_db_t *ran_on; /* SQLite's writes have a connection of their own */
} request_t;

static apr_status_t request_run(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    request_t *request = arg;

    request->ran_on = on;
    return request->effect(on, p, request->arg);
}

static void reads_little(mdl_db_run_fn *run, mdl_effect_fn *effect, void *arg, const char *name,
                         apr_pool_t *p)
{
    request_t request = {.effect = effect, .arg = arg, .ran_on = db};
    apr_status_t rv;

    too_much = "";
    statements = 0;
    rv = run(db, request_run, &request, p);
    if (mdl_db_dialect(db) == MDL_SQLITE3) {
        read_steps(request.ran_on);
    }
    ok(rv == APR_SUCCESS || rv == MDL_EPROBLEM, apr_pstrcat(p, name, ": it succeeds", NULL));
    ok(statements > 0 && *too_much == '\0',
       apr_psprintf(p, "%s: no statement reads too much of tables of %d rows", name, rows));
    printf("%s", too_much);
}

#endif
