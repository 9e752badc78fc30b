#include "db/dialect.h"

#include <ctype.h>
#include <string.h>

#include <apr_strings.h>
#include <libpq-fe.h>

static int pgsql_command(void *native, const char *sql)
{
    PGresult *result = PQexec(native, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK;
}

#define OID_INT8       20 /* of pg_type */
#define OID_TEXT       25
#define OID_INT8_ARRAY 1016

static Oid pgsql_type_of(char type)
{
    switch (type) {
    case 'i':
        return OID_INT8;
    case 'a':
        return OID_INT8_ARRAY;
    default:
        return OID_TEXT;
    }
}

/* A statement is known to the session by its name, which stands for it here. */
static void *pgsql_prepare(void *native, const mdl_statement_text_t *statement)
{
    Oid types[MDL_MAX_ARGUMENTS];
    int n = (int)strlen(statement->types);
    PGresult *result;
    ExecStatusType status;

    for (int i = 0; i < n; i++) {
        types[i] = pgsql_type_of(statement->types[i]);
    }
    result = PQprepare(native, statement->label, statement->text[MDL_PGSQL], n, types);
    status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK ? (void *)statement : NULL;
}

static apr_status_t pgsql_clear(void *result)
{
    PQclear(result);
    return APR_SUCCESS;
}

/* The texts stay in libpq's result, which p then owns. */
static void pgsql_read_rows(PGresult *from, mdl_result_t *result, apr_pool_t *p)
{
    mdl_cell_t *cell;

    apr_pool_cleanup_register(p, from, pgsql_clear, apr_pool_cleanup_null);
    result->rows = PQntuples(from);
    result->columns = PQnfields(from);
    cell = apr_pcalloc(p, sizeof *cell * (apr_size_t)result->rows * (apr_size_t)result->columns);
    result->cells = cell;
    for (int row = 0; row < result->rows; row++) {
        for (int column = 0; column < result->columns; column++, cell++) {
            if (!PQgetisnull(from, row, column)) {
                cell->type = MDL_CELL_TEXT;
                cell->text = PQgetvalue(from, row, column);
            }
        }
    }
}

static const char *pgsql_value(const mdl_arg_t *arg, apr_pool_t *p)
{
    switch (arg->type) {
    case 'i':
        return apr_psprintf(p, "%" APR_INT64_T_FMT, arg->i);
    case 's':
        return arg->s;
    case 'a':
        return mdl_db_ids_text(arg->a, '{', '}', p);
    default:
        return NULL;
    }
}

static int pgsql_run(void *native, const mdl_statement_text_t *statement, void *prepared,
                     const mdl_arg_t *args, mdl_result_t *result, apr_pool_t *p)
{
    const char *values[MDL_MAX_ARGUMENTS];
    int n = (int)strlen(statement->types);
    PGresult *got;

    (void)prepared;
    for (int i = 0; i < n; i++) {
        values[i] = pgsql_value(&args[i], p);
    }
    got = PQexecPrepared(native, statement->label, n, values, NULL, NULL, 0);
    switch (PQresultStatus(got)) {
    case PGRES_TUPLES_OK:
        pgsql_read_rows(got, result, p);
        return 0;
    case PGRES_COMMAND_OK:
        result->changed = apr_atoi64(PQcmdTuples(got));
        PQclear(got);
        return 0;
    default:
        PQclear(got);
        return 1;
    }
}

static apr_status_t pgsql_session(void *native)
{
    /* Verbose messages have the SQLSTATE, which is the same in every language of the server.

       A statement is planned once, by its form: each finds its few rows by an index, however large
       a table has become since the plan was made.  Left to itself the planner would read small
       tables from one end, and would keep to that until they are analyzed.  The penalty on what is
       turned off counts as a cost, which would have the server compile plans of milliseconds: hence
       jit. */
    PQsetErrorVerbosity(native, PQERRORS_VERBOSE);
    return pgsql_command(native, "SET lock_timeout = 5000; SET statement_timeout = 30000;"
                                 "SET idle_in_transaction_session_timeout = 30000;"
                                 "SET client_min_messages = warning;"
                                 "SET plan_cache_mode = force_generic_plan;"
                                 "SET enable_seqscan = off; SET enable_hashjoin = off;"
                                 "SET enable_mergejoin = off; SET jit = off")
               ? MDL_DB_EGONE
               : APR_SUCCESS;
}

/* Finds the five characters in "ERROR:  23505: duplicate key …". */
static int pgsql_sqlstate(const char *message, char state[6])
{
    const char *at = strchr(message, ':');

    if (at == NULL) {
        return 0;
    }
    for (at++; *at == ' '; at++) {
    }
    for (int i = 0; i < 5; i++) {
        if (!isdigit((unsigned char)at[i]) && !isupper((unsigned char)at[i])) {
            return 0;
        }
    }
    memcpy(state, at, 5);
    state[5] = '\0';
    return at[5] == ':';
}

static apr_status_t pgsql_classify(void *native)
{
    static const struct {
        const char *state; /* or its first two characters */
        apr_status_t error;
    } classes[] = {
        {"23505", MDL_DB_EUNIQUE}, {"55P03", MDL_DB_ELOCKED}, {"57014", MDL_DB_ELOCKED},
        {"40001", MDL_DB_ERETRY},  {"40P01", MDL_DB_ERETRY},  {"26000", MDL_DB_ESTALE},
        {"0A000", MDL_DB_ESTALE},  {"42P05", MDL_DB_ESTALE},  {"53100", MDL_DB_EFULL},
        {"25P03", MDL_DB_EGONE},   {"08", MDL_DB_EGONE},      {"57P", MDL_DB_EGONE},
        {"53300", MDL_DB_EGONE},   {"25006", MDL_DB_EGONE},
    };
    char state[6];

    if (PQstatus(native) != CONNECTION_OK || !pgsql_sqlstate(PQerrorMessage(native), state)) {
        return MDL_DB_EGONE;
    }
    for (apr_size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strncmp(state, classes[i].state, strlen(classes[i].state)) == 0) {
            return classes[i].error;
        }
    }
    return MDL_DB_EOTHER;
}

static const char *pgsql_error_text(void *native)
{
    return PQerrorMessage(native);
}

static apr_status_t pgsql_reset(void *native)
{
    PQreset(native);
    return PQstatus(native) == CONNECTION_OK ? APR_SUCCESS : MDL_DB_EGONE;
}

const mdl_dialect_ops_t mdl_dialect_pgsql = {
    .name = "pgsql",
    .dialect = MDL_PGSQL,
    .prepare = pgsql_prepare,
    .run = pgsql_run,
    .session = pgsql_session,
    .command = pgsql_command,
    .classify = pgsql_classify,
    .error_text = pgsql_error_text,
    .reset = pgsql_reset,
    .begin = "BEGIN",
    .begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};
