#include "db/dialect.h"

#include <ctype.h>
#include <string.h>

#include <libpq-fe.h>

static int pgsql_command(void *native, const char *sql)
{
    PGresult *result = PQexec(native, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK;
}

static apr_status_t pgsql_session(void *native)
{
    /* Verbose messages have the SQLSTATE, which is the same in every language of the server. */
    PQsetErrorVerbosity(native, PQERRORS_VERBOSE);
    return pgsql_command(native, "SET lock_timeout = 5000; SET statement_timeout = 30000;"
                                 "SET idle_in_transaction_session_timeout = 30000;"
                                 "SET client_min_messages = warning")
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
    .session = pgsql_session,
    .command = pgsql_command,
    .classify = pgsql_classify,
    .error_text = pgsql_error_text,
    .reset = pgsql_reset,
    .begin = "BEGIN",
    .begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};
