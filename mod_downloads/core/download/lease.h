/*
 * A meter: a process that delivers, with a lease in the database.  Its transfers are rows until it
 * settles them; when the lease ends, as after kill -9, others settle them by what was last known.
 */
#ifndef MDL_CORE_DOWNLOAD_LEASE_H
#define MDL_CORE_DOWNLOAD_LEASE_H

#include "core/download/session.h"

#define MDL_LEASE_TIME apr_time_from_sec(15)

typedef struct {
    const char *id;
    apr_time_t leased_until;
    const apr_array_header_t *progress; /* mdl_session_delivery_t: transfers that moved */
    apr_array_header_t *forbidden;      /* out: const char *, ids of transfers to be cut */
    apr_array_header_t *lost; /* out: ids of those that others have settled, to be cut, too */
} mdl_lease_tick_t;

/** Effect: renews the lease and writes down progress.  A transfer is
   lost when the lease ended in between: its session may have given its download back. */
apr_status_t mdl_lease_renew(mdl_db_t *db, apr_pool_t *p, mdl_lease_tick_t *tick);

/** Effect, reading: the transfers whose customer may not have the file any more, and those whose
   link has sent MDL_SESSION_FACTOR times its size. */
apr_status_t mdl_lease_forbidden(mdl_db_t *db, apr_pool_t *p, mdl_lease_tick_t *tick);

typedef struct {
    apr_interval_time_t idle;
    int limit;
    int more; /* out: there may be others */
} mdl_lease_sweep_t;

/** Effect: settles what meters left whose lease has ended. */
apr_status_t mdl_lease_sweep(mdl_db_t *db, apr_pool_t *p, mdl_lease_sweep_t *sweep);

#endif
