#include "db/dialect.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"

#define BUSY_WAIT apr_time_from_sec(5)
#define BUSY_NAP  1000                                   /* microseconds */
#define READ_ONLY "attempt to write a readonly database" /* SQLite's words */

typedef struct {
    sqlite3 *handle;
    sqlite3 *own; /* the handle if reset opened it; NULL: it is apr_dbd's */
    const char *path;
    int refused; /* the session was refused: a file is not writable */
    apr_time_t busy_since;
    apr_time_t patience; /* deadline of the BEGIN that is waiting; 0: none is */
} sqlite_t;

/* SQLite's memory statistics take a mutex that all threads share, and its page cache takes the
   first 20 pages of a temporary index in one allocation, which malloc returns to the kernel.
   Together they doubled a thread's cost of reading an order. */
void mdl_db_configure(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
}

static void *sqlite3_attach(void *native, apr_pool_t *p)
{
    sqlite_t *sqlite = apr_pcalloc(p, sizeof *sqlite);

    sqlite->handle = native;
    sqlite->path = apr_pstrdup(p, sqlite3_db_filename(native, "main"));
    return sqlite;
}

static void sqlite3_detach(void *native)
{
    const sqlite_t *sqlite = native;

    sqlite3_close(sqlite->own);
}

/* Whether a file can be written or created. */
static int is_writable(const char *path, const char *ending)
{
    char name[APR_PATH_MAX];

    apr_snprintf(name, sizeof name, "%s%s", path, ending);
    return faccessat(AT_FDCWD, name, W_OK, AT_EACCESS) == 0 || errno == ENOENT;
}

/* A handle opened on a read-only file stays read-only whatever happens to the file, and so does the
   -shm file for all connections of the process while any of them reads.  Each attempt to open the
   file also costs a descriptor until the other connections are closed. */
static const char *sqlite3_refusal(const char *path)
{
    return is_writable(path, "") && is_writable(path, "-wal") && is_writable(path, "-shm")
               ? NULL
               : READ_ONLY;
}

static int sqlite3_wait_for_others(void *data, int naps)
{
    sqlite_t *sqlite = data;

    if (naps == 0) {
        sqlite->busy_since = mdl_clock_monotonic();
    }
    apr_sleep(BUSY_NAP);
    return mdl_clock_monotonic() <
           (sqlite->patience > 0 ? sqlite->patience : sqlite->busy_since + BUSY_WAIT);
}

static int sqlite3_begin_write(void *native, apr_time_t patience)
{
    sqlite_t *sqlite = native;
    int rv;

    sqlite->patience = patience;
    rv = sqlite3_exec(sqlite->handle, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    sqlite->patience = 0;
    return rv != SQLITE_OK;
}

static int sqlite3_command(void *native, const char *sql)
{
    const sqlite_t *sqlite = native;

    return sqlite3_exec(sqlite->handle, sql, NULL, NULL, NULL) != SQLITE_OK;
}

static void sqlite3_prepare_statement(void *native, const mdl_statement_text_t *statement,
                                      void **prepared)
{
    const sqlite_t *sqlite = native;
    sqlite3_stmt *made = NULL;

    sqlite3_prepare_v3(sqlite->handle, statement->text[MDL_SQLITE3], -1, SQLITE_PREPARE_PERSISTENT,
                       &made, NULL);
    *prepared = made;
}

static void sqlite3_finish(void *prepared)
{
    sqlite3_finalize(prepared);
}

static int sqlite3_bind(sqlite3_stmt *prepared, int n, char type, const mdl_arg_t *arg,
                        apr_pool_t *p)
{
    if (mdl_arg_null(type, arg)) {
        return sqlite3_bind_null(prepared, n);
    }
    if (type != 's' && type != 'a') {
        return sqlite3_bind_int64(prepared, n, arg->number);
    }
    return sqlite3_bind_text(prepared, n,
                             type == 's' ? arg->text : mdl_db_ids_text(arg->ids, '[', ']', p), -1,
                             SQLITE_STATIC);
}

static void sqlite3_read_cell(sqlite3_stmt *row, int column, mdl_cell_t *cell, apr_pool_t *p)
{
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
        *cell = (mdl_cell_t){MDL_CELL_NULL, {0}};
        break;
    case SQLITE_INTEGER:
        cell->type = MDL_CELL_INT;
        cell->number = sqlite3_column_int64(row, column);
        break;
    default:
        cell->type = MDL_CELL_TEXT;
        cell->text = apr_pstrmemdup(p, (const char *)sqlite3_column_text(row, column),
                                    (apr_size_t)sqlite3_column_bytes(row, column));
    }
}

/* The cells read so far, a growing array: in a pool, each smaller array would stay allocated. */
typedef struct {
    mdl_cell_t few[96];
    mdl_cell_t *cells;
    apr_size_t room;
    apr_size_t count;
} sqlite_cells_t;

static void sqlite3_cells_reserve(sqlite_cells_t *read, apr_size_t more)
{
    mdl_cell_t *former = read->cells != read->few ? read->cells : NULL;
    mdl_cell_t *cells;

    if (read->count + more <= read->room) {
        return;
    }
    read->room = 2 * read->room + more;
    if ((cells = realloc(former, read->room * sizeof *cells)) == NULL) {
        abort();
    }
    if (former == NULL) {
        memcpy(cells, read->few, sizeof read->few);
    }
    read->cells = cells;
}

/* Reads all rows at once, so that no open statement keeps a lock or a snapshot. */
static int sqlite3_read_rows(sqlite3_stmt *prepared, mdl_result_t *result, apr_pool_t *p)
{
    sqlite_cells_t read = {.room = sizeof read.few / sizeof *read.few};
    int rv;

    read.cells = read.few;
    result->columns = sqlite3_column_count(prepared);
    while ((rv = sqlite3_step(prepared)) == SQLITE_ROW) {
        sqlite3_cells_reserve(&read, (apr_size_t)result->columns);
        for (int i = 0; i < result->columns; i++) {
            sqlite3_read_cell(prepared, i, &read.cells[read.count++], p);
        }
        result->rows++;
    }
    result->cells = apr_pmemdup(p, read.cells, read.count * sizeof *read.cells);
    if (read.cells != read.few) {
        free(read.cells);
    }
    return rv;
}

static int sqlite3_run(void *native, const mdl_statement_text_t *statement, void *prepared,
                       const mdl_arg_t *args, mdl_result_t *result, apr_pool_t *p)
{
    const sqlite_t *sqlite = native;
    mdl_result_t unwanted = {.rows = 0};
    int rv = SQLITE_OK;

    result = result != NULL ? result : &unwanted;
    for (int i = 0; statement->types[i] != '\0' && rv == SQLITE_OK; i++) {
        rv = sqlite3_bind(prepared, i + 1, statement->types[i], &args[i], p);
    }
    if (rv == SQLITE_OK) {
        rv = sqlite3_read_rows(prepared, result, p);
        result->changed = sqlite3_changes64(sqlite->handle);
        sqlite3_reset(prepared);
    }
    sqlite3_clear_bindings(prepared);
    return rv != SQLITE_DONE;
}

static apr_status_t sqlite3_session(void *native)
{
    sqlite_t *sqlite = native;
    int naps = 0;

    sqlite->refused = sqlite3_refusal(sqlite->path) != NULL ||
                      sqlite3_db_readonly(sqlite->handle, "main") == 1;
    if (sqlite->refused) {
        return MDL_DB_EGONE;
    }
    sqlite3_busy_handler(sqlite->handle, sqlite3_wait_for_others, sqlite);
    /* WAL is a property of the file, and setting it again costs nothing.  While another connection
       sets it, SQLite refuses without calling the busy handler.  The cache is small: every write of
       another connection empties it, each thread's malloc arena would keep a large one's memory,
       and the kernel caches the pages too.  The writer's cache is larger. */
    while (sqlite3_command(native, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                   "PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;"
                                   "PRAGMA cache_size = -128")) {
        if (sqlite3_errcode(sqlite->handle) != SQLITE_BUSY ||
            !sqlite3_wait_for_others(sqlite, naps++)) {
            return MDL_DB_EGONE;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t sqlite3_classify(void *native)
{
    const sqlite_t *sqlite = native;

    if (sqlite->refused) {
        return MDL_DB_EGONE;
    }
    switch (sqlite3_extended_errcode(sqlite->handle)) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
        return MDL_DB_EUNIQUE;
    case SQLITE_CONSTRAINT_NOTNULL:
        return MDL_DB_ENULL;
    default:
        break;
    }
    switch (sqlite3_errcode(sqlite->handle)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return MDL_DB_EBUSY;
    case SQLITE_SCHEMA:
    case SQLITE_OK: /* a statement outdated by this connection's own change of schema */
        return MDL_DB_ESTALE;
    case SQLITE_FULL:
        return MDL_DB_EFULL;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_IOERR: /* of the disk, so another statement would fail too */
        return MDL_DB_EGONE;
    default:
        return MDL_DB_EOTHER;
    }
}

static const char *sqlite3_error_text(void *native)
{
    const sqlite_t *sqlite = native;

    return sqlite->refused ? READ_ONLY : sqlite3_errmsg(sqlite->handle);
}

static apr_status_t sqlite3_open_anew(void *native)
{
    sqlite_t *sqlite = native;
    sqlite3 *opened = NULL;

    if (sqlite3_refusal(sqlite->path) != NULL ||
        sqlite3_open_v2(sqlite->path, &opened, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        sqlite3_close(opened);
        return MDL_DB_EGONE;
    }
    sqlite3_detach(sqlite);
    sqlite->handle = sqlite->own = opened;
    return APR_SUCCESS;
}

const mdl_dialect_ops_t mdl_dialect_sqlite3 = {
    .name = "sqlite3",
    .dialect = MDL_SQLITE3,
    .refusal = sqlite3_refusal,
    .attach = sqlite3_attach,
    .detach = sqlite3_detach,
    .prepare = sqlite3_prepare_statement,
    .finish = sqlite3_finish,
    .run = sqlite3_run,
    .session = sqlite3_session,
    .command = sqlite3_command,
    .classify = sqlite3_classify,
    .error_text = sqlite3_error_text,
    .reset = sqlite3_open_anew,
    .begin_write = sqlite3_begin_write,
    .begin_snapshot = "BEGIN",
};
