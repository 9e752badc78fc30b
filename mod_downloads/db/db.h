/*
 * The database, SQLite or PostgreSQL, over apr_dbd: connections, transactions, typed arguments and
 * rows, error classes.  The statements are those of sql/queries, named MDL_Q_…; each is prepared
 * when a connection first uses it.
 *
 * A transaction is a function.  mdl_db_write runs it between BEGIN and COMMIT and, when the
 * connection or its prepared statements turn out to be lost, mends the connection and runs it once
 * more, and up to four times more when PostgreSQL broke it off for a deadlock; so it must set its
 * results anew each time and have no other effect than its statements.
 *
 * On SQLite one process at a time is let in to write by a lock file beside the database, so that a
 * writer waits milliseconds for its turn and not for SQLite's own back-off; and the effects of
 * threads of one process that wait together are committed together.  An effect may thus run on the
 * connection, and in the thread, of another caller while its own sleeps.
 */
#ifndef MDL_DB_DB_H
#define MDL_DB_DB_H

#include <apr_dbd.h>
#include <apr_errno.h>
#include <apr_pools.h>

#include "db/statements.h"

typedef enum { MDL_SQLITE3 = 0, MDL_PGSQL = 1 } mdl_dialect_t;

/* What goes wrong, beside APR's own codes.  It has been logged with the database's words: as an
   error or warning where an operator has to know, else at debug. */
#define MDL_DB_EUNIQUE (APR_OS_START_USERERR + 101) /* a unique constraint */
#define MDL_DB_EBUSY   (APR_OS_START_USERERR + 102) /* SQLite: other programs wrote for 5 s */
#define MDL_DB_EGONE   (APR_OS_START_USERERR + 103) /* it is out of reach, or may only be read */
#define MDL_DB_EFULL   (APR_OS_START_USERERR + 104) /* its disk is full */
#define MDL_DB_EOTHER                                                                              \
    (APR_OS_START_USERERR + 105) /* a fault of ours, of the schema or of the disk */
#define MDL_DB_ELOCKED                                                                             \
    (APR_OS_START_USERERR + 108) /* PostgreSQL: another transaction held a row for 5 s */

/** Whether the database can't be used for the moment: the same may succeed later. */
static inline int mdl_db_unavailable(apr_status_t rv)
{
    return rv == MDL_DB_EGONE || rv == MDL_DB_EBUSY || rv == MDL_DB_ELOCKED;
}

typedef struct mdl_db_t mdl_db_t;

/**
 * Opens a connection of its own, which lives as long as p.  driver and params are mod_dbd's
 * DBDriver ("sqlite3", "pgsql") and DBDParams.  Returns MDL_DB_EGONE when the database does not
 * answer, APR_EINVAL for a driver that is not known or not installed; *why is then a line for
 * people, allocated from p.  Nothing is logged.
 */
apr_status_t mdl_db_open(mdl_db_t **db, const char *driver, const char *params, const char **why,
                         apr_pool_t *p);

/**
 * Takes over an open connection of mod_dbd.  What is made for it lives in connection_pool, the pool
 * of that connection, and is found again the next time it is attached.
 */
apr_status_t mdl_db_attach(mdl_db_t **db, const apr_dbd_driver_t *driver, apr_dbd_t *handle,
                           const char *params, apr_pool_t *connection_pool);

mdl_dialect_t mdl_db_dialect(const mdl_db_t *db);

/** What the database said of the last error, in one line; "" when it said nothing. */
const char *mdl_db_error(const mdl_db_t *db);

/** An argument of a statement. */
typedef struct {
    char type; /* 'i', 's' or 'n' */
    apr_int64_t i;
    const char *s;
} mdl_arg_t;

static inline mdl_arg_t mdl_int(apr_int64_t value)
{
    return (mdl_arg_t){.type = 'i', .i = value};
}

/** NULL is SQL's NULL. */
static inline mdl_arg_t mdl_text(const char *value)
{
    return (mdl_arg_t){.type = value ? 's' : 'n', .s = value};
}

static inline mdl_arg_t mdl_null(void)
{
    return (mdl_arg_t){.type = 'n'};
}

/** An integer whose 0 means NULL, such as a time that has not come. */
static inline mdl_arg_t mdl_int_or_null(apr_int64_t value)
{
    return value ? mdl_int(value) : mdl_null();
}

/** An integer that is negative for NULL, such as a length that nobody knows yet. */
static inline mdl_arg_t mdl_count_or_null(apr_int64_t value)
{
    return value < 0 ? mdl_null() : mdl_int(value);
}

/** The arguments of one call, as its last two parameters. */
#define MDL_ARGS(...)                                                                              \
    (const mdl_arg_t[]){__VA_ARGS__}, sizeof((const mdl_arg_t[]){__VA_ARGS__}) / sizeof(mdl_arg_t)
#define MDL_NO_ARGS NULL, 0

/** Runs a statement without rows.  *changed (may be NULL) gets the number of rows it touched. */
apr_status_t mdl_db_exec(mdl_db_t *db, mdl_statement_t statement, apr_int64_t *changed,
                         apr_pool_t *p, const mdl_arg_t *args, apr_size_t nargs);

typedef struct mdl_rows_t mdl_rows_t;

/** Runs a statement with rows, also INSERT … RETURNING.  The rows live in p. */
apr_status_t mdl_db_select(mdl_db_t *db, mdl_statement_t statement, mdl_rows_t **rows,
                           apr_pool_t *p, const mdl_arg_t *args, apr_size_t nargs);

/** The same for at most one row, already stepped to: APR_ENOENT when there is none. */
apr_status_t mdl_db_select_one(mdl_db_t *db, mdl_statement_t statement, mdl_rows_t **row,
                               apr_pool_t *p, const mdl_arg_t *args, apr_size_t nargs);

/** Steps to the next row; false after the last. */
int mdl_rows_next(mdl_rows_t *rows);

/* The columns of the row stepped to, from 0.  Text is copied into the rows' pool; NULL is NULL,
   and 0 as an integer. */
const char *mdl_rows_text(const mdl_rows_t *rows, int column);
apr_int64_t mdl_rows_int(const mdl_rows_t *rows, int column);
int mdl_rows_null(const mdl_rows_t *rows, int column);

/** A function of a database, a pool and an argument.  Anything but APR_SUCCESS rolls back.  It must
    not begin another transaction, on whatever connection: that would wait for its own end.  Those
   of core take their argument by its own type; who hands one over writes the three lines that lose
   the type. */
typedef apr_status_t mdl_effect_fn(mdl_db_t *db, apr_pool_t *p, void *arg);

/** Runs an effect in a transaction, see above.  What the effect returned comes back. */
apr_status_t mdl_db_write(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** Runs reading statements with the same mending, without a transaction. */
apr_status_t mdl_db_read(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** The same in a transaction, so that all of them see the database as it was at the first one: for
    what is read by several.  It takes a round trip to the server more at either end. */
apr_status_t mdl_db_snapshot(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** Runs one command of SQL text, such as a migration's: no arguments, no rows. */
apr_status_t mdl_db_command(mdl_db_t *db, const char *sql);

#endif
