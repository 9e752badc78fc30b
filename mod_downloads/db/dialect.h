/*
 * What apr_dbd does not offer, from each database's own library: transactions whose fsync blocks
 * nobody else, error classes, reconnecting.
 */
#ifndef MDL_DB_DIALECT_H
#define MDL_DB_DIALECT_H

#include "db/db.h"

/* Classes that never leave this room: the transaction is run again. */
#define MDL_DB_ESTALE (APR_OS_START_USERERR + 106) /* prepared statements are lost */
#define MDL_DB_ERETRY (APR_OS_START_USERERR + 107) /* deadlock or serialization failure */

typedef struct {
    const char *name;
    /** Prepares a new or a reset session. */
    apr_status_t (*session)(void *native);
    /** Runs a command without rows; error text is left in the native handle. */
    int (*command)(void *native, const char *sql);
    /** The class of the last error. */
    apr_status_t (*classify)(void *native);
    /** The words of the last error, borrowed until the next call. */
    const char *(*error_text)(void *native);
    /** Makes a lost connection anew; MDL_DB_EGONE when it can't.  NULL where apr_dbd has no way to,
        for SQLite opens its file but once. */
    apr_status_t (*reset)(void *native);
    const char *begin;          /* a transaction that may write */
    const char *begin_snapshot; /* one whose statements see the same moment */
} mdl_dialect_ops_t;

extern const mdl_dialect_ops_t mdl_dialect_sqlite3;
extern const mdl_dialect_ops_t mdl_dialect_pgsql;

#endif
