/*
 * What GET /health/ready answers, in memory that all processes of this node share: whoever asks,
 * one of them looks each 5 seconds at most, and the others answer what that one has found.  Times
 * are by mdl_clock_monotonic.
 */
#ifndef MDL_CORE_READINESS_H
#define MDL_CORE_READINESS_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mdl_readiness_t mdl_readiness_t;

/** Which parts are well. */
typedef struct {
    int database; /* a write works */
    int storage;  /* the folder is the database's, and can be written to */
    int worker;   /* a background process lives */
} mdl_ready_t;

/** To be called in httpd's parent before it forks; it lives as long as p.  Fails if there is no
    shared memory. */
apr_status_t mdl_readiness_create(mdl_readiness_t **readiness, apr_pool_t *p);

/** Of the background process: it lives. */
void mdl_readiness_beat(mdl_readiness_t *readiness);

/** Whether this node's background process lives: it has a process, which has beaten lately. */
int mdl_readiness_has_worker(const mdl_readiness_t *readiness);

/** Whether the caller has to look, and then to call mdl_readiness_set. */
int mdl_readiness_claim(mdl_readiness_t *readiness);

void mdl_readiness_set(mdl_readiness_t *readiness, const mdl_ready_t *ready);

/** What was found last.  Waits for the first to look, 10 seconds at most; then nothing counts as
    well. */
mdl_ready_t mdl_readiness_get(const mdl_readiness_t *readiness);

#endif
