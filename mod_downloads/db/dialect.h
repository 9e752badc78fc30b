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

#define MDL_MAX_ARGUMENTS 32 /* of a statement */

/** A value of a row: SQL's NULL, an integer (SQLite's), or a text, which is PostgreSQL's form of
   all types. */
typedef struct {
    enum { MDL_CELL_NULL, MDL_CELL_INT, MDL_CELL_TEXT } type;
    apr_int64_t number;
    const char *text;
} mdl_cell_t;

/** What a statement has returned. */
typedef struct {
    const mdl_cell_t *cells; /* row by row */
    int rows;
    int columns;
    apr_int64_t changed; /* rows that it inserted, updated or deleted */
} mdl_result_t;

typedef struct {
    const char *name; /* of the driver, as in DBDriver */
    mdl_dialect_t dialect;
    /** Makes the settings of a new or reset session. */
    apr_status_t (*session)(void *native);
    /** Prepares a statement.  Returns NULL if that failed, else what run wants. */
    void *(*prepare)(void *native, const mdl_statement_text_t *statement);
    /** Ends a prepared statement; NULL for PostgreSQL, which ends it with the session. */
    void (*finish)(void *prepared);
    /** Runs a prepared statement with as many arguments as statement->types has.  True if it
        failed.  What is in the result lives as long as p. */
    int (*run)(void *native, const mdl_statement_text_t *statement, void *prepared,
               const mdl_arg_t *args, mdl_result_t *result, apr_pool_t *p);
    /** Runs a command without rows.  True if it failed; the native handle has the error then. */
    int (*command)(void *native, const char *sql);
    /** The class of the last error. */
    apr_status_t (*classify)(void *native);
    /** The text of the last error, valid until the next call. */
    const char *(*error_text)(void *native);
    /** Reconnects; MDL_DB_EGONE if it can't.  NULL for SQLite, which opens its file only once. */
    apr_status_t (*reset)(void *native);
    const char *begin;          /* of a transaction that may write */
    const char *begin_snapshot; /* of one whose statements all see the same moment */
} mdl_dialect_ops_t;

/** A list of ids as text between brackets, "[1,2,3]". */
const char *mdl_db_ids_text(const apr_array_header_t *ids, char open, char close, apr_pool_t *p);

extern const mdl_dialect_ops_t mdl_dialect_sqlite3;
extern const mdl_dialect_ops_t mdl_dialect_pgsql;

#endif
