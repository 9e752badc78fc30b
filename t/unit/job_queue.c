/*
 * The cost of finding and claiming jobs does not depend on the number of jobs, present or past.  On
 * SQLite it is measured in steps of the virtual machine, on PostgreSQL in pages.
 */
#include "t/unit/fixtures.h"

#include <sqlite3.h>

#include "core/job.h"
#include "db/dialect.h"

#define FEW   1000
#define MANY  100000
#define BATCH 10000 /* rows that one statement inserts, because statements have a time limit */

/* Makes jobs of one lane with ids from first to last, due a microsecond apart. */
static void make_jobs(mdl_db_t *db, int first, int last, apr_pool_t *p)
{
    int end = last - first < BATCH ? last : first + BATCH - 1;
    const char *form = mdl_db_dialect(db) == MDL_SQLITE3
                           ? "WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n "
                             "WHERE i < %d) "
                           : "WITH n AS (SELECT generate_series(%d, %d) AS i) ";

    if (mdl_db_command(
            db, apr_pstrcat(p, apr_psprintf(p, form, first, end),
                            "INSERT INTO job (id, shop_id, type, lane, status, attempts, "
                            "max_attempts, due_at, lease_token, bytes_received, created_at) "
                            "SELECT 'job_' || i, (SELECT max(id) FROM shop), 'email', 'mail', "
                            "'queued', 0, 9, i, 0, 0, i FROM n",
                            NULL)) != APR_SUCCESS) {
        printf("Bail out! jobs: %s\n", mdl_db_error(db));
        exit(2);
    }
    if (end < last) {
        make_jobs(db, end + 1, last, p);
    }
}

/* --- SQLite: steps of its virtual machine --- */

static int steps_of(sqlite3 *sqlite, mdl_statement_t statement, const char *const *values)
{
    sqlite3_stmt *run;
    int steps;

    sqlite3_exec(sqlite, "BEGIN", NULL, NULL, NULL);
    if (sqlite3_prepare_v2(sqlite, mdl_statements[statement].text[MDL_SQLITE3], -1, &run, NULL) !=
        SQLITE_OK) {
        printf("# %s\n", sqlite3_errmsg(sqlite));
    }
    for (int i = 0; values[i] != NULL; i++) {
        if (mdl_statements[statement].types[i] == 'i') {
            sqlite3_bind_int64(run, i + 1, atoll(values[i]));
        } else {
            sqlite3_bind_text(run, i + 1, values[i], -1, SQLITE_STATIC);
        }
    }
    while (sqlite3_step(run) == SQLITE_ROW) {
    }
    steps = sqlite3_stmt_status(run, SQLITE_STMTSTATUS_VM_STEP, 0);
    sqlite3_finalize(run);
    sqlite3_exec(sqlite, "ROLLBACK", NULL, NULL, NULL);
    return steps;
}

/* --- PostgreSQL: pages --- */

static PGresult *pgsql_run(PGconn *pgsql, const char *sql)
{
    PGresult *result = PQexec(pgsql, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK) {
        printf("# %s: %s", sql, PQerrorMessage(pgsql));
    }
    return result;
}

/* The pages that the plan's top node has used, including those of all nodes below it. */
static int pages_of_plan(const PGresult *plan)
{
    for (int i = 0; i < PQntuples(plan); i++) {
        const char *line = strstr(PQgetvalue(plan, i, 0), "Buffers: shared");

        if (line != NULL) {
            const char *hit = strstr(line, "hit="), *read = strstr(line, "read=");

            return (hit != NULL ? atoi(hit + 4) : 0) + (read != NULL ? atoi(read + 5) : 0);
        }
    }
    return 0;
}

static int pages_of(PGconn *pgsql, mdl_statement_t statement, const char *const *values,
                    apr_pool_t *p)
{
    const char *types = "", *list = "";
    PGresult *plan;
    int pages;

    for (int i = 0; values[i] != NULL; i++) {
        const char *comma = i == 0 ? "" : ", ";

        types = apr_pstrcat(p, types, comma,
                            mdl_statements[statement].types[i] == 'i'   ? "bigint"
                            : mdl_statements[statement].types[i] == 'a' ? "bigint[]"
                                                                        : "text",
                            NULL);
        list = apr_pstrcat(p, list, comma, "'", values[i], "'", NULL);
    }
    PQclear(pgsql_run(pgsql, apr_pstrcat(p, "PREPARE it (", types, ") AS ",
                                         mdl_statements[statement].text[MDL_PGSQL], NULL)));
    PQclear(pgsql_run(pgsql, "BEGIN"));
    plan = pgsql_run(pgsql,
                     apr_pstrcat(p, "EXPLAIN (ANALYZE, BUFFERS) EXECUTE it (", list, ")", NULL));
    pages = pages_of_plan(plan);
    PQclear(plan);
    PQclear(pgsql_run(pgsql, "ROLLBACK"));
    PQclear(pgsql_run(pgsql, "DEALLOCATE it"));
    return pages;
}

/* --- both --- */

typedef struct {
    sqlite3 *sqlite; /* or NULL */
    PGconn *pgsql;
    apr_pool_t *p;
} server_t;

static int cost_of(const server_t *server, mdl_statement_t statement, const char *const *values)
{
    return server->sqlite != NULL ? steps_of(server->sqlite, statement, values)
                                  : pages_of(server->pgsql, statement, values, server->p);
}

static int cost_of_claim(const server_t *server, const char *from)
{
    const char *const values[] = {"worker", "8000000", "mail", from, "16", NULL};

    return cost_of(server, MDL_Q_JOB_CLAIM, values);
}

/* The cost of a claim while shop 1, which has the backlog, has jobs running. */
static int cost_of_shared(const server_t *server, const char *from)
{
    const char *running = server->sqlite != NULL ? "[1,1,1,1]" : "{1,1,1,1}";
    const char *const values[] = {"worker", "8000000", running, "0", "32",
                                  "mail",   from,      "16",    "1", NULL};

    return cost_of(server, MDL_Q_JOB_CLAIM_SHARED, values);
}

static int cost_of_look(const server_t *server, const char *from)
{
    const char *const values[] = {from, "8000000", from, from, from, from,
                                  from, from,      from, from, NULL};

    return cost_of(server, MDL_Q_JOB_LOOK, values);
}

/* Checks that a cost has hardly grown; another level of an index costs a page for each look-up. */
static int is_flat(int before, int after, const char *name, apr_pool_t *p)
{
    return ok(before > 0 && after <= before + before / 2 + 2,
              apr_psprintf(p, "%s: %d before, %d after", name, before, after));
}

static void test_queued(mdl_db_t *db, const server_t *server, apr_pool_t *p)
{
    int claim, shared, look;

    make_jobs(db, 1, FEW, p);
    claim = cost_of_claim(server, "0");
    shared = cost_of_shared(server, "0");
    look = cost_of_look(server, "0");
    make_jobs(db, FEW + 1, MANY, p);
    is_flat(claim, cost_of_claim(server, "0"), "a claim costs the same with many jobs queued", p);
    is_flat(shared, cost_of_shared(server, "0"),
            "a claim for several shops costs the same with many jobs queued", p);
    is_flat(look, cost_of_look(server, "0"), "a look costs the same with many jobs queued", p);
    /* Statistics as of a backlog: most jobs belong to one shop and can be claimed. */
    mdl_db_command(db, "ANALYZE job");
    is_flat(claim, cost_of_claim(server, "0"), "a claim costs the same once that is known", p);
    is_flat(shared, cost_of_shared(server, "0"),
            "a claim for several shops costs the same once that is known", p);
    is_flat(look, cost_of_look(server, "0"), "a look costs the same once that is known", p);
}

/* Ends the jobs of test_queued while a snapshot keeps their dead entries in the index. */
static void test_dead_rows(mdl_db_t *db, const server_t *server, const char *params, apr_pool_t *p)
{
    PGconn *holder = PQconnectdb(params);
    int claim, shared, look, from_first[2];

    make_jobs(db, MANY + 1, MANY + FEW, p);
    claim = cost_of_claim(server, "100001");
    shared = cost_of_shared(server, "100001");
    look = cost_of_look(server, "100001");
    PQclear(pgsql_run(holder, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    PQclear(pgsql_run(holder, "SELECT count(*) FROM job"));
    ok(mdl_db_command(db, "UPDATE job SET status = 'succeeded', due_at = NULL "
                          "WHERE due_at <= 100000") == APR_SUCCESS,
       "jobs end during a snapshot");
    from_first[0] = cost_of_look(server, "0");
    from_first[1] = cost_of_claim(server, "0");
    ok(from_first[0] > 10 * look && from_first[1] > 2 * claim,
       apr_psprintf(p,
                    "during a snapshot, a look and a claim from the first job on cost more because "
                    "of ended jobs: %d for %d, %d for %d",
                    from_first[0], look, from_first[1], claim));
    is_flat(claim, cost_of_claim(server, "100001"),
            "a claim from a later lower bound costs the same", p);
    is_flat(shared, cost_of_shared(server, "100001"),
            "a claim for several shops from a later lower bound costs the same", p);
    is_flat(look, cost_of_look(server, "100001"), "a look from a later lower bound costs the same",
            p);
    PQfinish(holder);
}

static void tests(const database_t *database, apr_pool_t *p)
{
    mdl_db_t *db = database_ready(database, p);
    server_t server = {.p = p};

    make_shop(db, "one.test", p);
    if (database->dialect == MDL_SQLITE3) {
        sqlite3_open(database->params, &server.sqlite);
        test_queued(db, &server, p);
        sqlite3_close(server.sqlite);
        return;
    }
    server.pgsql = PQconnectdb(database->params);
    mdl_dialect_pgsql.session(mdl_dialect_pgsql.attach(server.pgsql, p));
    mdl_db_command(db, "SET statement_timeout = 0"); /* for making and ending 100,000 jobs */
    test_queued(db, &server, p);
    test_dead_rows(db, &server, database->params, p);
    PQfinish(server.pgsql);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
