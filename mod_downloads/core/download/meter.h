/*
 * A meter: a process of httpd that delivers, and meters its transfers.  It has a row in the
 * database, and its transfers are rows there until it settles them.  While it lives it beats: it
 * moves alive_until on, by a clock of its own.  When that has stood still for MDL_METER_TIME, as
 * after kill -9, others settle its transfers by what was last written down (core/beat.h).
 */
#ifndef MDL_CORE_DOWNLOAD_METER_H
#define MDL_CORE_DOWNLOAD_METER_H

#include "base/crypto.h"
#include "core/beat.h"
#include "core/download/session_settle.h"

#define MDL_METER_TIME apr_time_from_sec(15)

typedef struct {
    const char *id;
    apr_time_t alive_until; /* by mdl_clock_monotonic; its beat */
    const mdl_secret_t *secret;
    const apr_array_header_t *progress; /* mdl_session_delivery_t: of transfers that moved */
    apr_array_header_t *forbidden;      /* out: const char *, ids of transfers to be cut */
    apr_array_header_t *lost;           /* out: ids of those that others have settled, to be cut,
                                           too: their sessions may have given their downloads back */
} mdl_meter_tick_t;

/** Effect: beats and writes down progress, also of transfers that have no row yet.
   Transfers are lost when others took the meter for dead in between. */
apr_status_t mdl_meter_renew(mdl_db_t *db, apr_pool_t *p, mdl_meter_tick_t *tick);

/** Effect, reading: finds the transfers whose customer may not have the file any more, also because
    the order's page was replaced, and those whose session has sent MDL_DOWNLOAD_FACTOR times its
    size. */
apr_status_t mdl_meter_forbidden(mdl_db_t *db, apr_pool_t *p, mdl_meter_tick_t *tick);

/** Effect that reads the beats (mdl_beat_t) of all meters. */
apr_status_t mdl_meter_beats(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **beats);

typedef struct {
    mdl_beat_t meter;
    apr_interval_time_t idle;
    int default_download_limit;
    int limit;
    int more; /* out: the meter may have others */
} mdl_meter_sweep_t;

/** Effect: settles up to limit transfers of a dead meter; none if it has beaten since.
 */
apr_status_t mdl_meter_sweep(mdl_db_t *db, apr_pool_t *p, mdl_meter_sweep_t *sweep);

#endif
