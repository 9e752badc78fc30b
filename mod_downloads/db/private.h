/*
 * What db.c and transaction.c know of a connection, and nobody else.
 */
#ifndef MDL_DB_PRIVATE_H
#define MDL_DB_PRIVATE_H

#include "db/dialect.h"

struct mdl_db_t {
    apr_pool_t *pool; /* the connection's */
    const apr_dbd_driver_t *driver;
    apr_dbd_t *handle;
    void *native;
    mdl_dialect_t dialect;
    const mdl_dialect_ops_t *ops;
    const char *file_path; /* these: of SQLite alone, else NULL */
    const char *lock_path;
    apr_uint64_t file_id; /* of the file that the session has opened */
    int lock_fd;
    int session;         /* whether the session's settings are made */
    apr_status_t failed; /* of the first statement that failed in this transaction */
    char error[512];
    apr_dbd_prepared_t *prepared[MDL_Q_COUNT];
};

/** Makes the session's settings, once for each new or reset connection. */
apr_status_t mdl_db_begin_session(mdl_db_t *db);

/** What tells SQLite's file from another of its name; 0 when there is none. */
apr_uint64_t mdl_db_file_id(const mdl_db_t *db);

/** Classes and logs the last error, and marks the transaction failed. */
apr_status_t mdl_db_note_failure(mdl_db_t *db, const char *what);

/** Keeps what the database said, for mdl_db_error. */
void mdl_db_keep_error(mdl_db_t *db);

#endif
