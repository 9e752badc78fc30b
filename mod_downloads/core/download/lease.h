/*
 * A lease: each process that delivers has one in the database, and renews it.  Its transfers are
 * rows there until it settles them.  When the lease has run out, as after kill -9, others settle
 * them by what was last written down.  It has run out when its beat (core/beat.h) has not changed
 * for MDL_LEASE_TIME.
 */
#ifndef MDL_CORE_DOWNLOAD_LEASE_H
#define MDL_CORE_DOWNLOAD_LEASE_H

#include "base/crypto.h"
#include "core/beat.h"
#include "core/download/session_settle.h"

#define MDL_LEASE_TIME apr_time_from_sec(15)

typedef struct {
    const char *id;
    apr_time_t leased_until; /* by mdl_clock_monotonic; its beat, too */
    const mdl_secret_t *secret;
    const apr_array_header_t *progress; /* mdl_session_delivery_t: of transfers that moved */
    apr_array_header_t *forbidden;      /* out: const char *, ids of transfers to be cut */
    apr_array_header_t *lost;           /* out: ids of those that others have settled, to be cut,
                                           too: their sessions may have given their downloads back */
} mdl_lease_tick_t;

/** Effect: renews the lease and writes down progress, also of transfers that have no row yet.
   Transfers are lost when the lease had run out in between. */
apr_status_t mdl_lease_renew(mdl_db_t *db, apr_pool_t *p, mdl_lease_tick_t *tick);

/** Effect, reading: finds the transfers whose customer may not have the file any more, also because
    the order's page was replaced, and those whose session has sent MDL_DOWNLOAD_FACTOR times its
    size. */
apr_status_t mdl_lease_forbidden(mdl_db_t *db, apr_pool_t *p, mdl_lease_tick_t *tick);

/** Effect that reads the beats (mdl_beat_t) of all leases. */
apr_status_t mdl_lease_beats(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **beats);

typedef struct {
    mdl_beat_t lease;
    apr_interval_time_t idle;
    int default_download_limit;
    int limit;
    int more; /* out: the lease may have others */
} mdl_lease_sweep_t;

/** Effect: settles up to limit transfers of a lease that has run out; none if it was renewed since.
 */
apr_status_t mdl_lease_sweep(mdl_db_t *db, apr_pool_t *p, mdl_lease_sweep_t *sweep);

#endif
