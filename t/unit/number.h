/*
 * Reading a number by the test's own SQL.
 */
#ifndef MDL_UNIT_NUMBER_H
#define MDL_UNIT_NUMBER_H

#include "t/unit/database.h"

#include <sqlite3.h>

/** The number that a query returns, or -1 if it fails. */
static inline int number_of(const database_t *database, const char *sql)
{
    int number = -1;

    if (database->dialect == MDL_SQLITE3) {
        sqlite3 *sqlite;
        sqlite3_stmt *statement = NULL;

        sqlite3_open(database->params, &sqlite);
        sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            number = sqlite3_column_int(statement, 0);
        }
        sqlite3_finalize(statement);
        sqlite3_close(sqlite);
    } else {
        PGconn *pgsql = PQconnectdb(database->params);
        PGresult *result = PQexec(pgsql, sql);

        if (PQntuples(result) == 1) {
            number = atoi(PQgetvalue(result, 0, 0));
        }
        PQclear(result);
        PQfinish(pgsql);
    }
    return number;
}

#endif
