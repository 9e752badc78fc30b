/*
 * Heartbeats: the holder of a lease in the database shows that it lives by changing a number there,
 * its beat, in time.  Processes that may take over watch the beats.  They compare no clocks of
 * different hosts: a holder is lost when its beat has not changed for some time by the watcher's
 * own monotonic clock.
 */
#ifndef MDL_CORE_BEAT_H
#define MDL_CORE_BEAT_H

#include <apr_pools.h>
#include <apr_tables.h>
#include <apr_time.h>

#include "db/db.h"

typedef struct mdl_beats_t mdl_beats_t;

typedef struct {
    const char *id;
    apr_int64_t beat;
} mdl_beat_t;

/** Watches beats, which are lost when they have not changed for patience.  For one thread. */
mdl_beats_t *mdl_beats_watch(apr_interval_time_t patience, apr_pool_t *p);

/**
 * Takes the current beats (mdl_beat_t), or NULL when the database could not be asked, and returns
 * the lost ones, allocated from p.  After such a failure, or a call more than patience ago, all
 * times start over: the holders could not change their beats either.
 */
apr_array_header_t *mdl_beats_look(mdl_beats_t *beats, const apr_array_header_t *now,
                                   apr_pool_t *p);

/** Reads beats (mdl_beat_t): the columns id and beat of a statement without parameters. */
apr_status_t mdl_beats_read(mdl_db_t *db, mdl_statement_t statement, apr_array_header_t **beats,
                            apr_pool_t *p);

#endif
