#include "db/dialect.h"

#include <sqlite3.h>

#include <apr_time.h>

#define BUSY_WAIT apr_time_from_sec(5)
#define BUSY_NAP  1000 /* microseconds */

static int sqlite3_wait_for_others(void *data, int naps)
{
    (void)data;
    apr_sleep(BUSY_NAP);
    return naps < BUSY_WAIT / BUSY_NAP;
}

/* Only here does a connection wait for others' locks: apr_dbd's calls hold a mutex of the whole
   process, so that one that waits inside them would hold up every other. */
static int sqlite3_command(void *native, const char *sql)
{
    int rv;

    sqlite3_busy_handler(native, sqlite3_wait_for_others, NULL);
    rv = sqlite3_exec(native, sql, NULL, NULL, NULL);
    sqlite3_busy_handler(native, NULL, NULL);
    return rv != SQLITE_OK;
}

static apr_status_t sqlite3_session(void *native)
{
    int naps = 0;

    /* WAL is a property of the file; asking for it again costs nothing.  If another connection
       makes the change at the same time, it is refused without a call of the busy handler.  The
       cache is small, since every write of another connection empties it, each thread's malloc
       arena would keep the memory of a large one, and the kernel caches the pages, too. */
    while (sqlite3_command(native, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                   "PRAGMA foreign_keys = ON; PRAGMA cache_size = -128")) {
        if (sqlite3_errcode(native) != SQLITE_BUSY || !sqlite3_wait_for_others(NULL, naps++)) {
            return MDL_DB_EGONE;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t sqlite3_classify(void *native)
{
    switch (sqlite3_extended_errcode(native)) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
        return MDL_DB_EUNIQUE;
    default:
        break;
    }
    switch (sqlite3_errcode(native)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return MDL_DB_EBUSY;
    case SQLITE_SCHEMA:
    case SQLITE_OK: /* of a statement that this connection's own change of schema has outdated */
        return MDL_DB_ESTALE;
    case SQLITE_FULL:
        return MDL_DB_EFULL;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY: /* the handle stays read-only, whatever happens to the file */
        return MDL_DB_EGONE;
    default:
        return MDL_DB_EOTHER;
    }
}

static const char *sqlite3_error_text(void *native)
{
    return sqlite3_errmsg(native);
}

const mdl_dialect_ops_t mdl_dialect_sqlite3 = {
    .name = "sqlite3",
    .dialect = MDL_SQLITE3,
    .session = sqlite3_session,
    .command = sqlite3_command,
    .classify = sqlite3_classify,
    .error_text = sqlite3_error_text,
    .begin = "BEGIN IMMEDIATE",
    .begin_snapshot = "BEGIN",
};
