/*
 * Every statement of sql/queries as each database plans it: none reads through a growing table.
 */
#include "t/unit/database.h"

#include <sqlite3.h>

#include "db/dialect.h"

/* Lines of plans that may scan a table or an index, and why. */
static const struct {
    mdl_statement_t statement;
    const char *line;
    const char *reason;
} allowed[] = {
    {MDL_Q_MIGRATION_VERSION, "schema_migration", "the table has a row for each release"},
    {MDL_Q_MIGRATION_TABLE_COUNT, "sqlite_master", "it has a row for each table and index"},
    {MDL_Q_SHOP_LIST, "shop", "an operator's command that lists every shop"},
    {MDL_Q_JOB_LIST, "job", "goes down the primary key and stops at its LIMIT"},
    {MDL_Q_IDEMPOTENCY_PRUNE, "idempotency_created", "goes up the index and stops at its OFFSET"},
};

static int is_allowed(mdl_statement_t statement, const char *line)
{
    if (strstr(line, "epoch") != NULL || strstr(line, "json_each") != NULL) {
        return 1; /* a table of one row; the array of a parameter */
    }
    if (strstr(line, "_rows") != NULL || strncmp(line, "SCAN (subquery-", 15) == 0) {
        return 1; /* rows that the statement has found before; how, its other lines say */
    }
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (allowed[i].statement == statement && strstr(line, allowed[i].line) != NULL) {
            return 1;
        }
    }
    return 0;
}

static const char *add_line(const char *to, const char *line, apr_pool_t *p)
{
    return apr_pstrcat(p, to, "#   ", line, "\n", NULL);
}

/* SQLite: SEARCH goes by an index; SCAN does not, even where it follows one. */
static const char *scans_of_sqlite(sqlite3 *sqlite, mdl_statement_t statement, apr_pool_t *p)
{
    const char *sql = apr_pstrcat(p, "EXPLAIN QUERY PLAN ",
                                  mdl_statements[statement].text[MDL_SQLITE3], NULL);
    const char *scans = "";
    sqlite3_stmt *plan;

    if (sqlite3_prepare_v2(sqlite, sql, -1, &plan, NULL) != SQLITE_OK) {
        return add_line("", sqlite3_errmsg(sqlite), p);
    }
    while (sqlite3_step(plan) == SQLITE_ROW) {
        const char *line = (const char *)sqlite3_column_text(plan, 3);

        if ((strncmp(line, "SCAN ", 5) == 0 && strcmp(line, "SCAN CONSTANT ROW") != 0 &&
             !is_allowed(statement, line)) ||
            strstr(line, "AUTOMATIC") != NULL) {
            scans = add_line(scans, line, p);
        }
    }
    sqlite3_finalize(plan);
    return scans;
}

static PGresult *pgsql_run(PGconn *pgsql, const char *sql)
{
    PGresult *result = PQexec(pgsql, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK) {
        printf("# %s: %s", sql, PQerrorMessage(pgsql));
    }
    return result;
}

/* PostgreSQL: a scan of a table, or of an index without a condition on it. */
static const char *scans_of_plan(PGresult *plan, mdl_statement_t statement, apr_pool_t *p)
{
    const char *scans = "";

    for (int i = 0; i < PQntuples(plan); i++) {
        const char *line = PQgetvalue(plan, i, 0);
        const char *next = i + 1 < PQntuples(plan) ? PQgetvalue(plan, i + 1, 0) : "";
        int unbounded = strstr(line, "Seq Scan on ") != NULL ||
                        ((strstr(line, "Index Scan ") != NULL ||
                          strstr(line, "Index Only Scan ") != NULL) &&
                         strstr(next, "Index Cond:") == NULL);

        if (unbounded && !is_allowed(statement, line)) {
            scans = add_line(scans, line + strspn(line, " "), p);
        }
    }
    return scans;
}

static const char *scans_of_pgsql(PGconn *pgsql, mdl_statement_t statement, apr_pool_t *p)
{
    const char *types = mdl_statements[statement].types;
    const char *prepare = "", *values = "";
    const char *scans;
    PGresult *plan;

    for (const char *type = types; *type != '\0'; type++) {
        const char *comma = type == types ? "" : ", ";

        prepare = apr_pstrcat(p, prepare, comma,
                              *type == 's'   ? "text"
                              : *type == 'a' ? "bigint[]"
                                             : "bigint",
                              NULL);
        values = apr_pstrcat(p, values, comma, "NULL", NULL);
    }
    if (*types != '\0') {
        prepare = apr_pstrcat(p, "(", prepare, ")", NULL);
        values = apr_pstrcat(p, "(", values, ")", NULL);
    }
    PQclear(pgsql_run(pgsql, apr_pstrcat(p, "PREPARE it ", prepare, " AS ",
                                         mdl_statements[statement].text[MDL_PGSQL], NULL)));
    plan = pgsql_run(pgsql, apr_pstrcat(p, "EXPLAIN EXECUTE it", values, NULL));
    scans = PQntuples(plan) > 0 ? scans_of_plan(plan, statement, p) : "#   there is no plan\n";
    PQclear(plan);
    PQclear(pgsql_run(pgsql, "DEALLOCATE it"));
    return scans;
}

static void tests(const database_t *database, apr_pool_t *p)
{
    sqlite3 *sqlite = NULL;
    PGconn *pgsql = NULL;

    database_ready(database, p);
    if (database->dialect == MDL_SQLITE3) {
        sqlite3_open(database->params, &sqlite);
    } else {
        pgsql = PQconnectdb(database->params);
        mdl_dialect_pgsql.session(mdl_dialect_pgsql.attach(pgsql, p));
    }
    for (mdl_statement_t i = 0; i < MDL_Q_COUNT; i++) {
        const char *scans = sqlite != NULL ? scans_of_sqlite(sqlite, i, p)
                                           : scans_of_pgsql(pgsql, i, p);

        if (!ok(*scans == '\0', apr_psprintf(p, "%s reads no growing table from one end",
                                             mdl_statements[i].label))) {
            printf("%s", scans);
        }
    }
    sqlite3_close(sqlite);
    PQfinish(pgsql);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
