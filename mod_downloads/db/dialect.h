/*
 * A database's operations, by its own library on a connection that apr_dbd has opened: statements,
 * transactions, error classes, reconnecting.  apr_dbd's own calls hold a process-wide mutex on
 * SQLite, and lack pipelines and error codes on PostgreSQL.
 */
#ifndef MDL_DB_DIALECT_H
#define MDL_DB_DIALECT_H

#include "db/db.h"

/* Error classes internal to this room: the transaction is run again. */
#define MDL_DB_ESTALE (APR_OS_START_USERERR + 106) /* prepared statements are lost */
#define MDL_DB_ERETRY (APR_OS_START_USERERR + 107) /* deadlock or serialization failure */

/** An argument of a statement, as it lies in its struct mdl_args_…. */
typedef union {
    apr_int64_t number;
    const char *text;
    const apr_array_header_t *ids;
} mdl_arg_t;

_Static_assert(sizeof(mdl_arg_t) == 8, "sql2c aligns arguments to 8 bytes");

/** Whether an argument is SQL's NULL, by its parameter's type (mdl_statement_text_t). */
static inline int mdl_arg_null(char type, const mdl_arg_t *arg)
{
    return type == 's' ? arg->text == NULL
                       : (type == 'z' && arg->number == 0) || (type == 'n' && arg->number < 0);
}

/** A value of a row: SQL's NULL, an integer (only SQLite's), or a text, PostgreSQL's form of any
    type. */
typedef struct {
    enum { MDL_CELL_NULL, MDL_CELL_INT, MDL_CELL_TEXT } type;
    union {
        apr_int64_t number; /* 0 with NULL */
        const char *text;
    };
} mdl_cell_t;

/** The result of a statement, valid once it is not pending. */
typedef struct {
    const mdl_cell_t *cells; /* row by row */
    int rows;
    int columns;
    apr_int64_t changed; /* rows inserted, updated or deleted */
    int pending;         /* sent to PostgreSQL, not answered yet */
    void *source;        /* owner of the cells' texts, private to the dialect */
} mdl_result_t;

/*
 * On PostgreSQL, statements between begin and end are sent without waiting (libpq's pipeline mode),
 * and flush waits for all their answers: one round trip.  SQLite runs each at once and has no
 * begin, end and flush.
 */
typedef struct {
    const char *name; /* of the driver, as in DBDriver */
    mdl_dialect_t dialect;
    /** Returns why a database must not be opened now, or NULL if it may; NULL for PostgreSQL. */
    const char *(*refusal)(const char *params);
    /** Wraps apr_dbd's native handle; returns the argument of the other functions, in p. */
    void *(*attach)(void *native, apr_pool_t *p);
    /** Closes a handle that reset opened; NULL for PostgreSQL, which keeps its handle. */
    void (*detach)(void *native);
    /** Applies the settings to a new or reset session. */
    apr_status_t (*session)(void *native);
    /** Whether another user of the handle has reconnected, so that the session lacks the settings;
        NULL for SQLite. */
    int (*is_new)(void *native);
    /** Sets whether waits for an answer are limited, the default; NULL for SQLite. */
    void (*limit)(void *native, int limited);
    /** Prepares a statement and sets *prepared, for run, unless that fails.  On PostgreSQL the next
        flush may report the failure, and resets *prepared to NULL. */
    void (*prepare)(void *native, const mdl_statement_text_t *statement, void **prepared);
    /** Frees a prepared statement; NULL for PostgreSQL, which frees it with the session. */
    void (*finish)(void *prepared);
    /** Runs or sends a prepared statement with an argument for each of statement->types.  result
        may be NULL; its contents live as long as p.  True if it failed. */
    int (*run)(void *native, const mdl_statement_text_t *statement, void *prepared,
               const mdl_arg_t *args, mdl_result_t *result, apr_pool_t *p);
    /** Runs or sends a command without rows.  True if it failed. */
    int (*command)(void *native, const char *sql);
    void (*begin)(void *native);
    /** Waits for the answers to all sent statements; false if there were none.  *failed gets the
        name of the first statement that failed. */
    int (*flush)(void *native, const char **failed);
    /** Ends the pipeline, after a flush. */
    void (*end)(void *native);
    /** The class of the last error. */
    apr_status_t (*classify)(void *native);
    /** The text of the last error, valid until the next call. */
    const char *(*error_text)(void *native);
    /** Reconnects, after all statements were finished; MDL_DB_EGONE if it can't. */
    apr_status_t (*reset)(void *native);
    /** Begins a transaction that may write, or sends BEGIN.  SQLite waits for other writers until
        patience (mdl_clock_monotonic), PostgreSQL by the session's settings.  True if it failed. */
    int (*begin_write)(void *native, apr_time_t patience);
    const char *begin_snapshot; /* begins a transaction with one snapshot */
    const char *wait_briefly;   /* shortens this transaction's waits for locks; NULL for SQLite */
} mdl_dialect_ops_t;

extern const mdl_dialect_ops_t mdl_dialect_sqlite3;
extern const mdl_dialect_ops_t mdl_dialect_pgsql;

#endif
