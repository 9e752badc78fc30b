/*
 * The database, SQLite or PostgreSQL: connections, which apr_dbd opens (connection.c), statements
 * with typed arguments and rows (statement.c), transactions (transaction.c), error classes.  The
 * statements are in sql/queries, named MDL_Q_…; a connection prepares each on first use.
 *
 * A transaction's body is a function, an effect, which mdl_db_write runs between BEGIN and COMMIT.
 * If the connection or its prepared statements are lost, mdl_db_write reconnects and runs the
 * effect again; it runs it up to five times if PostgreSQL aborts it for a deadlock.  So an effect
 * must set all its results each time and must only run statements.
 *
 * On SQLite a lock file beside the database admits one writing process at a time, so that a writer
 * waits milliseconds for its turn, not for SQLite's own back-off (writer_lock.c).  Effects of a
 * process's threads that wait at the same time are committed together, on the process's one writing
 * connection (writer.c).  So an effect may run in another caller's thread while its own caller
 * sleeps.
 */
#ifndef MDL_DB_DB_H
#define MDL_DB_DB_H

#include <stdatomic.h>

#include <apr_dbd.h>
#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>
#include <apr_time.h>

#include "db/statements.h"

typedef enum { MDL_SQLITE3 = 0, MDL_PGSQL = 1 } mdl_dialect_t;

/* Error classes, besides APR's own codes.  They have been logged with the database's message: as
   error or warning if the operator must know, else at debug. */
#define MDL_DB_EUNIQUE (APR_OS_START_USERERR + 101) /* a unique constraint is violated */
#define MDL_DB_EBUSY   (APR_OS_START_USERERR + 102) /* SQLite: other programs wrote for 5 s */
#define MDL_DB_EGONE   (APR_OS_START_USERERR + 103) /* unreachable, silent, read-only, bad disk */
#define MDL_DB_EFULL   (APR_OS_START_USERERR + 104) /* the disk is full */
#define MDL_DB_EOTHER  (APR_OS_START_USERERR + 105) /* a fault in our code or in the schema */
#define MDL_DB_ELOCKED (APR_OS_START_USERERR + 108) /* PostgreSQL: a row was locked for 5 s */
#define MDL_DB_ENULL   (APR_OS_START_USERERR + 109) /* NOT NULL violated, or division by zero */
#define MDL_DB_ENEWER  (APR_OS_START_USERERR + 111) /* the schema is too new, see db/migrate.h */
#define MDL_DB_ECLOSED (APR_OS_START_USERERR + 112) /* maintenance: nothing may be changed */

/** Whether the database is temporarily unavailable: a retry may succeed, on another node at least.
 */
static inline int mdl_db_unavailable(apr_status_t rv)
{
    return rv == MDL_DB_EGONE || rv == MDL_DB_EBUSY || rv == MDL_DB_ELOCKED ||
           rv == MDL_DB_ENEWER || rv == MDL_DB_ECLOSED;
}

typedef struct mdl_db_t mdl_db_t;

/**
 * Configures SQLite for the whole process, also for other modules: no memory statistics.  Call it
 * when the module is loaded, before any connection is opened; later it has no effect.
 */
void mdl_db_configure(void);

/**
 * Opens a connection that lives as long as p.  driver and params are mod_dbd's DBDriver ("sqlite3",
 * "pgsql") and DBDParams.  Returns MDL_DB_EGONE if the database does not answer, APR_EINVAL for an
 * unknown driver or one that is not installed; *why is then a line for people, in p.  Nothing is
 * logged.
 */
apr_status_t mdl_db_open(mdl_db_t **db, const char *driver, const char *params, const char **why,
                         apr_pool_t *p);

/**
 * Wraps an open connection of mod_dbd.  The wrapper lives in connection_pool, the connection's
 * pool, and later attachments of the connection find it there.  The clean-up that closes the
 * connection must be registered with that pool already.
 */
apr_status_t mdl_db_attach(mdl_db_t **db, const apr_dbd_driver_t *driver, apr_dbd_t *handle,
                           const char *params, apr_pool_t *connection_pool);

/**
 * Creates the queue in which processes wait to write to SQLite.  Call it in httpd's parent before
 * it forks; the queue lives as long as p.  Fails without shared memory.
 */
apr_status_t mdl_db_share_writer_queue(apr_pool_t *p);

mdl_dialect_t mdl_db_dialect(const mdl_db_t *db);

/** Whether a transaction failed because the server was silent for a second or more.  Until the
    connection is attached again, all further transactions return MDL_DB_EGONE at once instead of
    waiting too. */
int mdl_db_silent(const mdl_db_t *db);

/** Pings the server and reconnects if that helps.  Returns MDL_DB_EGONE if it does not answer. */
apr_status_t mdl_db_ask(mdl_db_t *db, apr_pool_t *p);

/**
 * Whether the connection keeps its session from one transaction to the next, with its prepared
 * statements and settings.  Behind a pooler in transaction mode it does not: each transaction gets
 * any of the pooler's own connections.  Finds out by a second connection; params, why and the
 * errors are those of mdl_db_open.  Always kept on SQLite.
 */
apr_status_t mdl_db_keeps_session(mdl_db_t *db, const char *params, int *kept, const char **why,
                                  apr_pool_t *p);

/** Sets whether waits for an answer end after 7 s, the default; a migration may take longer. */
void mdl_db_limit_waits(mdl_db_t *db, int limited);

/** The database's message about the last error, in one line; "" if it gave none. */
const char *mdl_db_error(const mdl_db_t *db);

/** Sets the id of the request that uses the connection, for effects to read; NULL for none.  The id
    must live until another is set. */
void mdl_db_set_request(mdl_db_t *db, const char *request_id);
const char *mdl_db_request(const mdl_db_t *db);

/** Counters of a connection since it was opened, without those of mdl_db_set_check's check. */
typedef struct {
    apr_uint32_t statements; /* run, not counting BEGIN and COMMIT */
    apr_uint32_t trips;      /* round trips to PostgreSQL */
    apr_uint32_t rows;       /* read */
} mdl_db_cost_t;

mdl_db_cost_t mdl_db_cost(const mdl_db_t *db);

/** Adds to the rows read, for a statement that aggregates rows into one, such as a text of ids. */
void mdl_db_count_rows(mdl_db_t *db, apr_uint32_t rows);

/** A statement with its arguments, which must live until it has been sent. */
typedef struct {
    mdl_statement_t statement;
    mdl_statement_t named; /* the statement whose parameters args has */
    const void *args;      /* its struct mdl_args_… */
} mdl_query_t;

/**
 * MDL_Q(JOB_OF_SHOP, .id = id, .shop_id = shop_id) is MDL_Q_JOB_OF_SHOP with an argument for each
 * parameter: an integer, a text (NULL is SQL's NULL), or a list of ids (apr_int64_t).  A single
 * argument needs no name.  MDL_Q_AS is for a statement that is chosen at run time and has the named
 * statement's parameters.
 */
#define MDL_Q(name, ...) MDL_Q_AS(MDL_Q_##name, name, __VA_ARGS__)
#define MDL_Q_AS(statement, name, ...)                                                             \
    ((mdl_query_t){(statement), MDL_Q_##name,                                                      \
                   &(const struct mdl_args_##name){__VA_ARGS__} +                                  \
                       MDL_CHECK(sizeof(struct mdl_args_##name) == 8 * MDL_COUNT(__VA_ARGS__),     \
                                 "each parameter has an argument")})

/* 0, with a compile-time check. */
#define MDL_CHECK(...)                                                                             \
    (0 * sizeof(struct {                                                                           \
         _Static_assert(__VA_ARGS__);                                                              \
         char unused;                                                                              \
     }))

/** A list of ids (apr_int64_t) as text between brackets, "[1,2,3]". */
const char *mdl_db_ids_text(const apr_array_header_t *ids, char open, char close, apr_pool_t *p);

/*
 * On PostgreSQL an effect's statement is only queued until a result is needed: *changed,
 * mdl_db_select_one, the first step to a row.  Its error may appear at a later statement.  Queued
 * statements share one round trip, so run those first that depend on no result.  An error that the
 * effect does not see still fails its transaction.
 */

/** Runs a statement without rows.  *changed (may be NULL) gets the number of rows it changed. */
apr_status_t mdl_db_exec(mdl_db_t *db, apr_int64_t *changed, apr_pool_t *p, mdl_query_t query);

typedef struct mdl_rows_t mdl_rows_t;

/** Runs a statement with rows, also INSERT … RETURNING.  The rows live in p. */
apr_status_t mdl_db_select(mdl_db_t *db, mdl_rows_t **rows, apr_pool_t *p, mdl_query_t query);

/** Runs a statement for at most one row and steps to it; APR_ENOENT if there is none. */
apr_status_t mdl_db_select_one(mdl_db_t *db, mdl_rows_t **row, apr_pool_t *p, mdl_query_t query);

/** Steps to the next row; false after the last. */
int mdl_rows_next(mdl_rows_t *rows);

/** Steps to the only row; APR_ENOENT if there is none, or the error of a queued statement. */
apr_status_t mdl_rows_one(mdl_rows_t *rows);

/* Columns of the current row, from 0.  Text lives as long as the rows' pool.  SQL's NULL reads as
   NULL for text and 0 for integers, -1 for _or_none. */
const char *mdl_rows_text(const mdl_rows_t *rows, int column);
apr_int64_t mdl_rows_int(const mdl_rows_t *rows, int column);
apr_int64_t mdl_rows_int_or_none(const mdl_rows_t *rows, int column);
int mdl_rows_null(const mdl_rows_t *rows, int column);

/** The enum value whose name (base/names.h) is in the column.  Any other text is logged, reads as
    0, and makes the effect's transaction return MDL_DB_EOTHER, not APR_SUCCESS. */
unsigned mdl_rows_enum(const mdl_rows_t *rows, int column, const char *const *names);

/* Columns by name.  MDL_TEXT(row, job, id) is the column id of a row of the statement job, or of
   any statement that uses the part job_columns. */
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

/** Adds n to a counter once the transaction is committed; nothing if it is not. */
void mdl_db_count(mdl_db_t *db, atomic_llong *counter, apr_int64_t n);

/** Notes that work is due at a time, such as a job that the effect queued. */
void mdl_db_note_due(mdl_db_t *db, apr_time_t at);

/** Notes that the effect wrote an event, which must get its number (core/shop/event.h). */
void mdl_db_note_event(mdl_db_t *db);

/** The work for the background process. */
typedef struct {
    apr_time_t at; /* the earliest time that was noted; 0: none */
    int events;    /* whether events must get numbers */
} mdl_db_due_t;

/** Returns and clears the notes.  An effect whose caller needs them calls this at its beginning, to
    clear an earlier effect's, and at its end. */
mdl_db_due_t mdl_db_take_due(mdl_db_t *db);

/** An effect, see above.  Any result but APR_SUCCESS rolls back.  It must not begin a transaction
    on any connection, which would wait for this transaction to end. */
typedef apr_status_t mdl_effect_fn(mdl_db_t *db, apr_pool_t *p, void *arg);

/** Has the first transaction of each session, and then one a second, begin with a check, an effect
    without an argument.  If the check fails, so does the transaction, with its error; with
    MDL_DB_ECLOSED only one of mdl_db_write does, and each transaction then begins with a check. */
void mdl_db_set_check(mdl_db_t *db, mdl_effect_fn *check);

/** Has SQLite not check references when this connection writes, for rows that come in any order.
    Call it before the connection is used; its effects are not committed with other threads'. */
void mdl_db_ignore_references(mdl_db_t *db);

/** Whether the last check returned MDL_DB_ECLOSED. */
int mdl_db_is_closed(const mdl_db_t *db);

/** Adapts an effect whose argument has its own type: defines fn_effect for the functions below.
    Does not compile if fn takes another type. */
#define MDL_EFFECT(fn, type)                                                                       \
    static apr_status_t fn##_effect(mdl_db_t *db, apr_pool_t *p, void *arg)                        \
    {                                                                                              \
        type typed = arg;                                                                          \
                                                                                                   \
        return fn(db, p, typed);                                                                   \
    }

/** For an effect of mdl_db_write: its further statements wait for a locked row for 250 ms, not 5 s.
    Does nothing on SQLite, which locks no rows. */
apr_status_t mdl_db_wait_briefly(mdl_db_t *db);

/** Runs an effect in a transaction and returns its result, or the error that rolled it back. */
apr_status_t mdl_db_write(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** mdl_db_write for what ends work that has begun, which goes on during maintenance. */
apr_status_t mdl_db_settle(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** Runs an effect that only reads, with the same reconnecting, without a transaction. */
apr_status_t mdl_db_read(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** Runs an effect that only reads in a transaction, so that its statements see one snapshot.
    Ending it costs another round trip, which mdl_db_end_snapshot saves. */
apr_status_t mdl_db_snapshot(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** For an effect of mdl_db_snapshot: ends the transaction after the queued statements, in their
    round trip.  Later statements are outside the snapshot.  Does nothing in other effects. */
apr_status_t mdl_db_end_snapshot(mdl_db_t *db);

/** mdl_db_write, mdl_db_settle, mdl_db_read or mdl_db_snapshot. */
typedef apr_status_t mdl_db_run_fn(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

/** Reads how many bytes the file system of SQLite's file has left; APR_ENOENT on PostgreSQL. */
apr_status_t mdl_db_free(const mdl_db_t *db, apr_int64_t *bytes);

/** Runs an SQL command without arguments and rows, such as a migration's, and waits for it. */
apr_status_t mdl_db_command(mdl_db_t *db, const char *sql);

#endif
