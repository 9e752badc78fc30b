/*
 * The answers of GET /health/ready and GET /health/storage, in memory that all processes of this
 * node share: one process checks every 5 seconds at most, and all answer with its result.  Times
 * are by mdl_clock_monotonic.
 */
#ifndef MDL_CORE_READINESS_H
#define MDL_CORE_READINESS_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mdl_readiness_t mdl_readiness_t;

/** Which parts are ready. */
typedef struct {
    int database; /* can be written to */
    int storage;  /* the folder belongs to the database, and can be written to */
    int worker;   /* a background process lives */
    int closed;   /* for maintenance: only what can be read is served (core/closed.h) */
} mdl_ready_t;

/** Which places of the storage work. */
typedef struct {
    int folder;  /* can be written to; also if there is none */
    int objects; /* the store answers; also if there is none */
} mdl_places_ready_t;

/** Called in httpd's parent before it forks; lives as long as p.  Fails without shared memory. */
apr_status_t mdl_readiness_create(mdl_readiness_t **readiness, apr_pool_t *p);

/** The heartbeat of the background process. */
void mdl_readiness_beat(mdl_readiness_t *readiness);

/** Whether this node's background process exists and has sent a recent heartbeat. */
int mdl_readiness_has_worker(const mdl_readiness_t *readiness);

/** The time since its last heartbeat, -1: it has sent none. */
apr_interval_time_t mdl_readiness_beat_age(const mdl_readiness_t *readiness);

/** Whether the caller must check, and then call mdl_readiness_set. */
int mdl_readiness_claim(mdl_readiness_t *readiness);

void mdl_readiness_set(mdl_readiness_t *readiness, const mdl_ready_t *ready);

/** The last result.  Waits for the first one, 10 seconds at most; after that, nothing is ready. */
mdl_ready_t mdl_readiness_get(const mdl_readiness_t *readiness);

/** The same for the places of the storage. */
int mdl_readiness_claim_places(mdl_readiness_t *readiness);
void mdl_readiness_set_places(mdl_readiness_t *readiness, const mdl_places_ready_t *ready);
mdl_places_ready_t mdl_readiness_get_places(const mdl_readiness_t *readiness);

#endif
