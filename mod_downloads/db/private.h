/*
 * The structure of a connection, private to this room.
 */
#ifndef MDL_DB_PRIVATE_H
#define MDL_DB_PRIVATE_H

#include "db/db.h"
#include "db/dialect.h"

#define MDL_DB_TALLIES 32

/* What mdl_db_count has been told in this transaction. */
typedef struct {
    int count;
    struct {
        atomic_llong *counter;
        apr_int64_t n;
    } each[MDL_DB_TALLIES];
} mdl_db_tally_t;

struct mdl_db_t {
    apr_pool_t *pool; /* the connection's */
    const apr_dbd_driver_t *driver;
    apr_dbd_t *handle;
    void *native;
    const mdl_dialect_ops_t *ops;
    const char *file_path; /* SQLite only, else NULL; lock_path likewise */
    const char *lock_path;
    apr_uint64_t file_id;   /* of the opened file, see mdl_db_file_id */
    int lock_fd;            /* -1: not open */
    int session;            /* whether the session has its settings */
    int silent;             /* see mdl_db_silent */
    int snapshot;           /* whether a transaction of mdl_db_snapshot is open */
    apr_status_t failed;    /* the first error in this transaction */
    const char *request_id; /* see mdl_db_set_request */
    mdl_db_due_t due;       /* see mdl_db_take_due */
    mdl_db_tally_t tally;
    mdl_effect_fn *check; /* see mdl_db_set_check; NULL: none */
    apr_time_t check_at;  /* when it is due, by mdl_clock_monotonic */
    int closed;           /* see mdl_db_is_closed */
    int unreferenced;     /* see mdl_db_ignore_references */
    apr_time_t patience;  /* SQLite: deadline of waits for other writers, by mdl_clock_monotonic */
    char error[512];
    void *prepared[MDL_Q_COUNT];
    mdl_db_cost_t cost;
};

/** Applies the session's settings, once for each new or reset connection. */
apr_status_t mdl_db_begin_session(mdl_db_t *db);

/** Waits for the answers to all sent statements.  Returns the first error, which has been noted. */
apr_status_t mdl_db_flush(mdl_db_t *db);

/** Runs SQL without arguments and rows, such as COMMIT, and waits for all answers. */
apr_status_t mdl_db_finish_by(mdl_db_t *db, const char *sql);

/** Forgets all prepared statements; the session of PostgreSQL may still know theirs. */
void mdl_db_forget_statements(mdl_db_t *db);

/** Identifies SQLite's file, even if another has replaced it by name; 0 if there is none. */
apr_uint64_t mdl_db_file_id(const mdl_db_t *db);

/** Classifies and logs the last error, marks the transaction as failed, returns the class. */
apr_status_t mdl_db_note_failure(mdl_db_t *db, const char *what);

/** Keeps the text of the last error for mdl_db_error. */
void mdl_db_keep_error(mdl_db_t *db);

#endif
