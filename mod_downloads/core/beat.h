/*
 * Beats: whoever holds something in the database for a time shows that it lives by changing a
 * number there, its beat, before the time is over.  Who may take over watches the beats.  No two
 * clocks are compared, and none that can be set: what counts is how long a beat has stayed the
 * same, by the monotonic clock of the one that watches.
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

/** Watches beats that are lost when they have not changed for so long.  For one thread. */
mdl_beats_t *mdl_beats_watch(apr_interval_time_t patience, apr_pool_t *p);

/**
 * Says what all beats (mdl_beat_t) are now, or NULL when the database could not be asked, and
 * returns those that are lost, allocated from p.  When nobody has looked for longer than the
 * patience, or the database could not be asked, time counts anew for all: their holders could not
 * change them either.
 */
apr_array_header_t *mdl_beats_look(mdl_beats_t *beats, const apr_array_header_t *now,
                                   apr_pool_t *p);

/** Reads beats (mdl_beat_t): the columns id and beat of a statement without arguments. */
apr_status_t mdl_beats_read(mdl_db_t *db, mdl_statement_t statement, apr_array_header_t **beats,
                            apr_pool_t *p);

#endif
