/*
 * The database, SQLite or PostgreSQL: connections, which apr_dbd opens (connection.c), statements
 * with typed arguments and rows (statement.c), transactions (transaction.c), error classes.  The
 * statements are those of sql/queries, named MDL_Q_…; a connection prepares each when it first uses
 * it.
 *
 * A transaction is a function, its effect.  mdl_db_write runs it between BEGIN and COMMIT.  If the
 * connection or its prepared statements turn out to be lost, mdl_db_write mends the connection and
 * runs the effect again; up to four times if PostgreSQL aborts it for a deadlock.  So an effect
 * must set all its results each time, and do nothing but run statements.
 *
 * On SQLite a lock file beside the database admits one writing process at a time, so that a writer
 * waits milliseconds for its turn instead of SQLite's own back-off (writer_lock.c); and effects of
 * one process's threads that wait at the same time are committed together.  They run on one
 * connection of the process that does nothing else (writer.c).  So an effect may run in another
 * caller's thread, while its own caller sleeps.
 */
#ifndef MDL_DB_DB_H
#define MDL_DB_DB_H

#include <apr_dbd.h>
#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>
#include <apr_time.h>

#include "db/statements.h"

typedef enum { MDL_SQLITE3 = 0, MDL_PGSQL = 1 } mdl_dialect_t;

/* Error classes, beside APR's own codes.  The error has been logged with the database's message:
   as an error or warning if an operator has to know, else at debug. */
#define MDL_DB_EUNIQUE (APR_OS_START_USERERR + 101) /* a unique constraint is violated */
#define MDL_DB_EBUSY   (APR_OS_START_USERERR + 102) /* SQLite: other programs wrote for 5 s */
#define MDL_DB_EGONE                                                                               \
    (APR_OS_START_USERERR + 103) /* out of reach, silent, read-only, or its disk fails */
#define MDL_DB_EFULL   (APR_OS_START_USERERR + 104) /* the disk is full */
#define MDL_DB_EOTHER  (APR_OS_START_USERERR + 105) /* our mistake, or the schema's */
#define MDL_DB_ELOCKED (APR_OS_START_USERERR + 108) /* PostgreSQL: a row was locked for 5 s */
#define MDL_DB_ENULL                                                                               \
    (APR_OS_START_USERERR + 109) /* NULL where there must be a value, or a division by zero */

/** Whether the database can't be used for the moment: the same may succeed later. */
static inline int mdl_db_unavailable(apr_status_t rv)
{
    return rv == MDL_DB_EGONE || rv == MDL_DB_EBUSY || rv == MDL_DB_ELOCKED;
}

typedef struct mdl_db_t mdl_db_t;

/**
 * Sets what SQLite does alike for all connections of a process, also those of other modules: it
 * does not count the memory that they use.  To be called when the module is loaded, before any is
 * opened: afterwards it changes nothing.
 */
void mdl_db_configure(void);

/**
 * Opens a new connection, which lives as long as p.  driver and params are mod_dbd's DBDriver
 * ("sqlite3", "pgsql") and DBDParams.  Returns MDL_DB_EGONE if the database does not answer,
 * APR_EINVAL for an unknown driver or one that is not installed; *why is then a line for people,
 * allocated from p.  Nothing is logged.
 */
apr_status_t mdl_db_open(mdl_db_t **db, const char *driver, const char *params, const char **why,
                         apr_pool_t *p);

/**
 * Wraps an open connection of mod_dbd.  The wrapper lives in connection_pool, the pool of that
 * connection, and is found again the next time the connection is attached.  The clean-up that
 * closes the connection must have been registered with that pool before.
 */
apr_status_t mdl_db_attach(mdl_db_t **db, const apr_dbd_driver_t *driver, apr_dbd_t *handle,
                           const char *params, apr_pool_t *connection_pool);

/**
 * Makes the queue of the processes that want to write to SQLite, which then take turns.  To be
 * called in httpd's parent before it forks; it lives as long as p.  Fails if there is no shared
 * memory.
 */
apr_status_t mdl_db_share_writer_queue(apr_pool_t *p);

mdl_dialect_t mdl_db_dialect(const mdl_db_t *db);

/** Whether a transaction was given up because the server could not be heard for a second or more,
   so that others need not wait to find that out.  Until the connection is attached again all
   further transactions return MDL_DB_EGONE at once. */
int mdl_db_silent(const mdl_db_t *db);

/** Asks for an answer of the server, over a connection that is made anew where that helps.  Returns
    MDL_DB_EGONE if there is none. */
apr_status_t mdl_db_ask(mdl_db_t *db, apr_pool_t *p);

/** Sets whether waits for an answer are limited to 7 s, as they are at first.  A migration may take
    longer. */
void mdl_db_limit_waits(mdl_db_t *db, int limited);

/** The database's message about the last error, in one line; "" if it gave none. */
const char *mdl_db_error(const mdl_db_t *db);

/** Sets the request on whose behalf the connection is used, which effects may ask for; NULL for
    none.  The id must live until another is set. */
void mdl_db_set_request(mdl_db_t *db, const char *request_id);
const char *mdl_db_request(const mdl_db_t *db);

/** What a connection has done since it was opened. */
typedef struct {
    apr_uint32_t statements; /* run, without BEGIN and COMMIT */
    apr_uint32_t trips;      /* to PostgreSQL's server and back */
    apr_uint32_t rows;       /* read */
} mdl_db_cost_t;

mdl_db_cost_t mdl_db_cost(const mdl_db_t *db);

/** Counts rows as read that a statement has put into one, as in a text of ids. */
void mdl_db_count_rows(mdl_db_t *db, apr_uint32_t rows);

/** A statement with its arguments, which live until it has been sent. */
typedef struct {
    mdl_statement_t statement;
    mdl_statement_t named; /* the one whose parameters the arguments are of */
    const void *args;      /* its struct mdl_args_… */
} mdl_query_t;

/**
 * MDL_Q(JOB_OF_SHOP, .id = id, .shop_id = shop_id) is MDL_Q_JOB_OF_SHOP with an argument for each
 * of its parameters: an integer, a text, of which NULL is SQL's NULL, or a list of ids
 * (apr_int64_t).  A single one needs no name.  MDL_Q_AS is for a statement that is chosen when the
 * program runs, and has the parameters of the named one.
 */
#define MDL_Q(name, ...) MDL_Q_AS(MDL_Q_##name, name, __VA_ARGS__)
#define MDL_Q_AS(statement, name, ...)                                                             \
    ((mdl_query_t){(statement), MDL_Q_##name,                                                      \
                   &(const struct mdl_args_##name){__VA_ARGS__} +                                  \
                       MDL_CHECK(sizeof(struct mdl_args_##name) == 8 * MDL_COUNT(__VA_ARGS__),     \
                                 "each parameter has an argument")})

/* 0 */
#define MDL_CHECK(...)                                                                             \
    (0 * sizeof(struct {                                                                           \
         _Static_assert(__VA_ARGS__);                                                              \
         char unused;                                                                              \
     }))

/** A list of ids (apr_int64_t) as text between brackets, "[1,2,3]". */
const char *mdl_db_ids_text(const apr_array_header_t *ids, char open, char close, apr_pool_t *p);

/*
 * On PostgreSQL a statement in an effect is only sent, and its error comes with a later one, unless
 * its result is wanted: *changed, mdl_db_select_one, the first step to a row.  All that was sent
 * until then travels together, which costs one round trip: so send first what does not depend on an
 * answer.  An error that the effect does not see fails its transaction all the same.
 */

/** Runs a statement without rows.  *changed (may be NULL) gets the number of rows it changed. */
apr_status_t mdl_db_exec(mdl_db_t *db, apr_int64_t *changed, apr_pool_t *p, mdl_query_t query);

typedef struct mdl_rows_t mdl_rows_t;

/** Runs a statement with rows, also INSERT … RETURNING.  The rows live in p. */
apr_status_t mdl_db_select(mdl_db_t *db, mdl_rows_t **rows, apr_pool_t *p, mdl_query_t query);

/** The same for at most one row, already stepped to; APR_ENOENT if there is none. */
apr_status_t mdl_db_select_one(mdl_db_t *db, mdl_rows_t **row, apr_pool_t *p, mdl_query_t query);

/** Steps to the next row; false after the last. */
int mdl_rows_next(mdl_rows_t *rows);

/** The same where a statement gives at most one row: APR_ENOENT if there is none, or the error of a
    statement that was sent. */
apr_status_t mdl_rows_one(mdl_rows_t *rows);

/* Columns of the current row, from 0.  Text lives as long as the rows' pool.  SQL's NULL is NULL as
   text, and 0 as an integer, but -1 for _or_none. */
const char *mdl_rows_text(const mdl_rows_t *rows, int column);
apr_int64_t mdl_rows_int(const mdl_rows_t *rows, int column);
apr_int64_t mdl_rows_int_or_none(const mdl_rows_t *rows, int column);
int mdl_rows_null(const mdl_rows_t *rows, int column);

/** The value of an enum whose name (base/names.h) is in the column.  Any other text is logged and
    reads as 0, and what runs the effect returns MDL_DB_EOTHER in place of APR_SUCCESS. */
unsigned mdl_rows_enum(const mdl_rows_t *rows, int column, const char *const *names);

/* The same by name.  MDL_TEXT(row, job, id) is the column id of a row whose columns are those of
   the part job_columns, or of the statement job. */
#define MDL_TEXT(row, list, column)        mdl_rows_text(row, mdl_c_##list##_##column)
#define MDL_INT(row, list, column)         mdl_rows_int(row, mdl_c_##list##_##column)
#define MDL_INT_OR_NONE(row, list, column) mdl_rows_int_or_none(row, mdl_c_##list##_##column)
#define MDL_NULL(row, list, column)        mdl_rows_null(row, mdl_c_##list##_##column)
#define MDL_ENUM(row, list, column, names) mdl_rows_enum(row, mdl_c_##list##_##column, names)

/** MDL_READ(row, job, job, id, due_at) reads the columns id and due_at of the list job into the
   members job->id and job->due_at.  They are const char *, apr_int64_t or int. */
#define MDL_READ(row, list, record, ...) MDL_EACH(MDL_READ_ONE, row, list, record, __VA_ARGS__)
#define MDL_READ_ONE(row, list, record, member)                                                    \
    ((record)->member = _Generic((record)->member, const char *: mdl_rows_text,                    \
                                 apr_int64_t: mdl_rows_int, int: mdl_rows_small)(                  \
         row, mdl_c_##list##_##member))

static inline int mdl_rows_small(const mdl_rows_t *rows, int column)
{
    return (int)mdl_rows_int(rows, column);
}

/** Notes that something is due at a time, such as a job that the effect has queued. */
void mdl_db_note_due(mdl_db_t *db, apr_time_t at);

/** Notes that the effect has written something that is to be numbered (core/shop/event.h). */
void mdl_db_note_event(mdl_db_t *db);

/** What the background process has to do. */
typedef struct {
    apr_time_t at; /* the earliest time that was noted; 0: none */
    int events;    /* whether there are some to be numbered */
} mdl_db_due_t;

/** What was noted since the last call.  An effect whose caller has to know it calls this first, to
    forget what another effect has left, and last. */
mdl_db_due_t mdl_db_take_due(mdl_db_t *db);

/** An effect, see above.  Anything but APR_SUCCESS rolls back.  It must not begin another
    transaction on any connection: that would wait for the end of this one. */
typedef apr_status_t mdl_effect_fn(mdl_db_t *db, apr_pool_t *p, void *arg);

/** The effects of core take their argument by its own type.  This defines fn_effect, which a caller
    hands to the functions below.  It does not compile if fn takes another type. */
#define MDL_EFFECT(fn, type)                                                                       \
    static apr_status_t fn##_effect(mdl_db_t *db, apr_pool_t *p, void *arg)                        \
    {                                                                                              \
        type typed = arg;                                                                          \
                                                                                                   \
        return fn(db, p, typed);                                                                   \
    }

/** For an effect of mdl_db_write: from here on its statements wait for a locked row for 250 ms, and
    not for 5 s.  Nothing on SQLite, which locks no rows. */
apr_status_t mdl_db_wait_briefly(mdl_db_t *db);

/** Runs an effect in a transaction and returns what it returned, or why it was rolled back. */
apr_status_t mdl_db_write(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** Runs an effect that only reads, with the same mending but no transaction. */
apr_status_t mdl_db_read(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** The same in a transaction, so that several statements all see the database as the first one
   does.  To end it costs one more round trip to the server, but for mdl_db_end_snapshot. */
apr_status_t mdl_db_snapshot(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** For an effect of mdl_db_snapshot: ends the transaction behind the statements that were sent. The
    COMMIT travels with them.  Each statement that follows sees the database as it is then.  In the
    effects of others this does nothing. */
apr_status_t mdl_db_end_snapshot(mdl_db_t *db);

/** One of these three. */
typedef apr_status_t mdl_db_run_fn(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** Runs one command of SQL without arguments and rows, such as a migration's, and waits for it. */
apr_status_t mdl_db_command(mdl_db_t *db, const char *sql);

#endif
