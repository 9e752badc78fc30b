/*
 * What apr_dbd does not offer, by each database's own library: transactions whose fsync blocks
 * nobody else, error classes, reconnecting.
 */
#ifndef MDL_DB_DIALECT_H
#define MDL_DB_DIALECT_H

#include "db/db.h"

/* Error classes that never leave this room: the transaction is run again. */
#define MDL_DB_ESTALE (APR_OS_START_USERERR + 106) /* prepared statements are lost */
#define MDL_DB_ERETRY (APR_OS_START_USERERR + 107) /* deadlock or serialization failure */

typedef struct {
    const char *name; /* of the driver, as in DBDriver */
    mdl_dialect_t dialect;
    /** Makes the settings of a new or reset session. */
    apr_status_t (*session)(void *native);
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

extern const mdl_dialect_ops_t mdl_dialect_sqlite3;
extern const mdl_dialect_ops_t mdl_dialect_pgsql;

#endif
