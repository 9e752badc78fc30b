/*
 * Fills every table with the rows of t/unit/seed.sql.  PostgreSQL has no statistics of them, as
 * after fast growth.
 */
#ifndef MDL_T_UNIT_SEED_H
#define MDL_T_UNIT_SEED_H

#include "t/unit/database.h"

#include <sqlite3.h>

#include <apr_file_io.h>

static inline const char *seed_read_file(apr_pool_t *p)
{
    apr_finfo_t info;
    apr_file_t *file;
    char *text;

    if (apr_file_open(&file, "t/unit/seed.sql", APR_READ, 0, p) != APR_SUCCESS ||
        apr_file_info_get(&info, APR_FINFO_SIZE, file) != APR_SUCCESS) {
        printf("Bail out! t/unit/seed.sql can't be read\n");
        exit(2);
    }
    text = apr_pcalloc(p, (apr_size_t)info.size + 1);
    apr_file_read_full(file, text, (apr_size_t)info.size, NULL);
    apr_file_close(file);
    return text;
}

/* Foreign keys are not checked: they are valid, and checking a million rows would take minutes. */
static inline void seed_pgsql(const database_t *database, int rows, apr_pool_t *p)
{
    const char *begin = apr_psprintf(
        p,
        "SET client_min_messages = warning; SET session_replication_role = replica;"
        "SET synchronous_commit = off; SET statement_timeout = 0;"
        "DO $$ DECLARE name text; BEGIN"
        " FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind = 'r'"
        " LOOP EXECUTE 'ALTER TABLE ' || name || ' SET (autovacuum_enabled = off)'; END LOOP;"
        "END $$;"
        "CREATE TEMP TABLE seed AS SELECT generate_series(1, %d) AS i;",
        rows);

    if (!pgsql_command(database->params, apr_pstrcat(p, begin, seed_read_file(p), NULL))) {
        printf("Bail out! t/unit/seed.sql\n");
        exit(2);
    }
}

static inline void seed_sqlite(const database_t *database, int rows, apr_pool_t *p)
{
    const char *begin = apr_psprintf(
        p,
        "PRAGMA synchronous = OFF; BEGIN; CREATE TEMP TABLE seed AS WITH RECURSIVE n (i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n;",
        rows);
    char *error = NULL;
    sqlite3 *sqlite;

    sqlite3_open(database->params, &sqlite);
    if (sqlite3_exec(sqlite, apr_pstrcat(p, begin, seed_read_file(p), "COMMIT", NULL), NULL, NULL,
                     &error) != SQLITE_OK) {
        printf("Bail out! t/unit/seed.sql: %s\n", error);
        exit(2);
    }
    sqlite3_close(sqlite);
}

/** Migrates a database and fills it. */
static inline void seed(const database_t *database, int rows, apr_pool_t *p)
{
    database_ready(database, p);
    (database->dialect == MDL_PGSQL ? seed_pgsql : seed_sqlite)(database, rows, p);
}

#endif
