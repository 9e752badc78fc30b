/*
 * Holds on the storage: while there is any, no blob is removed.  So if the database is copied
 * first, a copy of the storage has every blob that the database's copy refers to, however long
 * copying takes.  A forgotten hold costs disk space, so that of a backup is a lease, which the
 * backup renews: if it is killed, the hold lapses.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_HOLD_H
#define MDL_CORE_CATALOG_STORAGE_HOLD_H

#include "core/problem.h"
#include "db/db.h"

typedef struct {
    const char *id;
    const char *user; /* the system's user who holds it */
    apr_time_t since;
    apr_interval_time_t lease; /* 0: until it is released */
} mdl_storage_hold_t;

/** Effect: holds the storage for a user; id and since are set. */
apr_status_t mdl_storage_hold(mdl_db_t *db, apr_pool_t *p, mdl_storage_hold_t *hold);

/** Effect: renews a lease.  APR_ENOENT if it has lapsed: files may be gone. */
apr_status_t mdl_storage_hold_renew(mdl_db_t *db, apr_pool_t *p, const mdl_storage_hold_t *hold);

/** Reads the oldest hold; APR_ENOENT when nobody holds the storage. */
apr_status_t mdl_storage_held(mdl_db_t *db, mdl_storage_hold_t *hold, apr_pool_t *p);

/** Effect: ends a hold, or all of them.  Refused: 404 hold_not_found. */
typedef struct {
    const char *id;       /* NULL: all */
    apr_int64_t released; /* out */
    mdl_problem_t *problem;
} mdl_storage_release_t;
apr_status_t mdl_storage_release(mdl_db_t *db, apr_pool_t *p, mdl_storage_release_t *release);

#endif
