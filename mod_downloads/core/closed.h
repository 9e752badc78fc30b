/*
 * Maintenance: the operator has closed the service to changes.  Pages and reads go on; a
 * transaction that would change something is MDL_DB_ECLOSED, so requests that write get 503 and
 * jobs wait.  What has begun ends: mdl_db_settle.  Each connection learns of it by its check
 * (mdl_migrate_check), a second later at most.
 */
#ifndef MDL_CORE_CLOSED_H
#define MDL_CORE_CLOSED_H

#include "db/db.h"

#define MDL_CLOSED_WAIT  60                   /* seconds, for Retry-After */
#define MDL_CLOSED_LEARN apr_time_from_sec(3) /* until all know: the check, and a meter's tick */

/* For whoever runs a command meanwhile. */
#define MDL_CLOSED_SENTENCE                                                                        \
    "Maintenance is on: nothing may be changed, and downloads and jobs wait, until downloadsctl "  \
    "maintenance off."

typedef struct {
    apr_time_t since;    /* by the database's clock; 0: the service is open */
    const char *reason;  /* or NULL */
    const char *copy_of; /* NULL, or what this database is becoming a copy of */
} mdl_closed_t;

/** Effect: closes the service.  If it is closed already, only a reason that is given changes. */
apr_status_t mdl_closed_begin(mdl_db_t *db, apr_pool_t *p, const char *reason);

/** Effect, for mdl_db_settle: opens the service.  APR_ENOENT if it is open already, or its database
    is an unfinished copy. */
apr_status_t mdl_closed_end(mdl_db_t *db, apr_pool_t *p, void *unused);

/** Effects: a database is closed while it becomes a copy, and stays so afterwards. */
apr_status_t mdl_closed_copy_begin(mdl_db_t *db, apr_pool_t *p, const mdl_closed_t *closed);
apr_status_t mdl_closed_copy_end(mdl_db_t *db, apr_pool_t *p, void *unused);

/** Effect: whether it is closed. */
apr_status_t mdl_closed_find(mdl_db_t *db, apr_pool_t *p, mdl_closed_t *closed);

/** Effect: what has begun and not ended yet. */
typedef struct {
    apr_time_t before;        /* for transactions: that began before this time */
    apr_int64_t downloads;    /* out, like all that follow: transfers to be settled */
    apr_int64_t uploads;      /* whose bytes are being written to an object */
    apr_int64_t jobs;         /* that run */
    apr_int64_t transactions; /* of others; on SQLite 0, where one writer follows another */
    apr_int64_t backups;      /* that hold the storage */
} mdl_closed_running_t;

apr_status_t mdl_closed_running(mdl_db_t *db, apr_pool_t *p, mdl_closed_running_t *running);

#endif
