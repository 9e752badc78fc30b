/*
 * A meter: a process of httpd that delivers files and meters its transfers.  The meter has a row in
 * the database, and so does each transfer until it is settled.  The meter's heartbeat (core/beat.h)
 * moves alive_until forward, by the meter's own clock.  Once it has stood still for MDL_METER_TIME,
 * as after kill -9, other processes settle the meter's transfers by their last recorded progress.
 */
#ifndef MDL_CORE_DOWNLOAD_METER_H
#define MDL_CORE_DOWNLOAD_METER_H

#include "base/crypto.h"
#include "core/beat.h"
#include "core/download/session_settle.h"

#define MDL_METER_TIME apr_time_from_sec(15)

typedef struct {
    const char *id;
    apr_time_t alive_until; /* the heartbeat, by mdl_clock_monotonic */
    const mdl_secret_t *secret;
    const apr_array_header_t *progress; /* mdl_session_delivery_t: transfers with progress */
    apr_array_header_t *forbidden;      /* out: const char *, ids of transfers to cut */
    apr_array_header_t *lost; /* out: ids of transfers settled by others, to cut, too: their
                                 sessions may have given downloads back */
} mdl_meter_tick_t;

/** Effect: sends the heartbeat and records progress, also of transfers without a row.  Transfers
    are lost if others took the meter for dead in the meantime. */
apr_status_t mdl_meter_renew(mdl_db_t *db, apr_pool_t *p, mdl_meter_tick_t *tick);

/** Effect that only reads: finds the transfers that are no longer allowed, because the customer
    lost access, the order's page was replaced, or the session has sent MDL_DOWNLOAD_FACTOR times
    its size. */
apr_status_t mdl_meter_forbidden(mdl_db_t *db, apr_pool_t *p, mdl_meter_tick_t *tick);

/** Effect: reads the heartbeats (mdl_beat_t) of all meters. */
apr_status_t mdl_meter_beats(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **beats);

typedef struct {
    mdl_beat_t meter;
    apr_interval_time_t idle;
    int default_download_limit;
    int limit;
    int more; /* out: whether the meter may have more */
} mdl_meter_sweep_t;

/** Effect: settles up to limit transfers of a dead meter; none if its heartbeat has moved since. */
apr_status_t mdl_meter_sweep(mdl_db_t *db, apr_pool_t *p, mdl_meter_sweep_t *sweep);

#endif
