/*
 * What runs on a connection that apr_dbd has opened, by each database's own library: statements,
 * transactions, error classes, reconnecting.  apr_dbd's own calls hold a mutex of the whole process
 * on SQLite, and know neither pipelines nor error codes on PostgreSQL.
 */
#ifndef MDL_DB_DIALECT_H
#define MDL_DB_DIALECT_H

#include "db/db.h"

/* Error classes that never leave this room: the transaction is run again. */
#define MDL_DB_ESTALE (APR_OS_START_USERERR + 106) /* prepared statements are lost */
#define MDL_DB_ERETRY (APR_OS_START_USERERR + 107) /* deadlock or serialization failure */

/** An argument of a statement, as it lies in its struct mdl_args_…. */
typedef union {
    apr_int64_t number;
    const char *text;
    const apr_array_header_t *ids;
} mdl_arg_t;

_Static_assert(sizeof(mdl_arg_t) == 8, "sql2c aligns arguments to 8 bytes");

/** Whether it is SQL's NULL, by the type of its parameter (mdl_statement_text_t). */
static inline int mdl_arg_null(char type, const mdl_arg_t *arg)
{
    return type == 's' ? arg->text == NULL
                       : (type == 'z' && arg->number == 0) || (type == 'n' && arg->number < 0);
}

/** A value of a row: SQL's NULL, an integer (SQLite's), or a text, which is PostgreSQL's form of
   all types. */
typedef struct {
    enum { MDL_CELL_NULL, MDL_CELL_INT, MDL_CELL_TEXT } type;
    union {
        apr_int64_t number; /* 0 with NULL */
        const char *text;
    };
} mdl_cell_t;

/** What a statement has returned, once it is not pending any more. */
typedef struct {
    const mdl_cell_t *cells; /* row by row */
    int rows;
    int columns;
    apr_int64_t changed; /* rows that it inserted, updated or deleted */
    int pending;         /* sent to PostgreSQL, and not answered yet */
    void *source;        /* of the cells' texts; the dialect's own */
} mdl_result_t;

/*
 * On PostgreSQL, statements between begin and end are sent without waiting for an answer (libpq's
 * pipeline mode), until flush waits for all of them: it is one round trip.  SQLite runs each at
 * once, and has no begin, end and flush.
 */
typedef struct {
    const char *name; /* of the driver, as in DBDriver */
    mdl_dialect_t dialect;
    /** Why a database must not be opened at present, NULL if it may; NULL for PostgreSQL. */
    const char *(*refusal)(const char *params);
    /** Takes a native handle of apr_dbd's; returns what the others want, which lives in p. */
    void *(*attach)(void *native, apr_pool_t *p);
    /** Closes what reset has opened; NULL for PostgreSQL, whose handle stays the same. */
    void (*detach)(void *native);
    /** Makes the settings of a new or reset session. */
    apr_status_t (*session)(void *native);
    /** Whether the session is not the one that got the settings, because somebody else has
        reconnected; NULL where nobody can. */
    int (*is_new)(void *native);
    /** Sets whether the wait for an answer is limited, as it is at first; NULL for SQLite. */
    void (*limit)(void *native, int limited);
    /** Prepares a statement.  Sets *prepared, for run, unless that fails; on PostgreSQL a failure
        may come with the next flush, which sets *prepared to NULL again. */
    void (*prepare)(void *native, const mdl_statement_text_t *statement, void **prepared);
    /** Ends a prepared statement; NULL for PostgreSQL, which ends it with the session. */
    void (*finish)(void *prepared);
    /** Runs a prepared statement with as many arguments as statement->types has, or sends it; the
        result is NULL if nobody wants it.  True if it failed.  The result's contents live as long
        as p. */
    int (*run)(void *native, const mdl_statement_text_t *statement, void *prepared,
               const mdl_arg_t *args, mdl_result_t *result, apr_pool_t *p);
    /** Runs a command without rows, or sends it.  True if it failed. */
    int (*command)(void *native, const char *sql);
    void (*begin)(void *native);
    /** Waits for all that was sent; false if that was nothing.  *failed gets the name of what
       failed first. */
    int (*flush)(void *native, const char **failed);
    /** Ends what begin began, after a flush. */
    void (*end)(void *native);
    /** The class of the last error. */
    apr_status_t (*classify)(void *native);
    /** The text of the last error, valid until the next call. */
    const char *(*error_text)(void *native);
    /** Reconnects, after all statements were ended; MDL_DB_EGONE if it can't. */
    apr_status_t (*reset)(void *native);
    /** Begins a transaction that may write, or sends that.  On SQLite it waits for others to write
        until patience (mdl_clock_monotonic), on PostgreSQL as long as the session's settings say.
        True if it failed. */
    int (*begin_write)(void *native, apr_time_t patience);
    const char *begin_snapshot; /* a transaction whose statements all see the same moment */
    const char *wait_briefly;   /* for locks, in this transaction; NULL for SQLite */
} mdl_dialect_ops_t;

extern const mdl_dialect_ops_t mdl_dialect_sqlite3;
extern const mdl_dialect_ops_t mdl_dialect_pgsql;

#endif
