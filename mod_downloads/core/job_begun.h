/*
 * The jobs that the background process has begun, and their progress, in memory that outlives the
 * process: so its successor knows which jobs may have caused its death.
 */
#ifndef MDL_CORE_JOB_BEGUN_H
#define MDL_CORE_JOB_BEGUN_H

#include <stdatomic.h>

#include <apr_pools.h>
#include <apr_tables.h>

#include "base/ulid.h"

typedef struct mdl_begun_t mdl_begun_t;

typedef enum {
    MDL_BEGUN_NOT,
    MDL_BEGUN_WAITS, /* it only talks to another host: it may have caused a crash of the process,
                        but not a kill from outside or a lack of memory */
    MDL_BEGUN_WORKS  /* it may have caused any death of the process */
} mdl_begun_state_t;

/** A job claimed by the process. */
typedef struct {
    char id[8 + MDL_ULID_LENGTH]; /* "": the entry is free */
    apr_int64_t lease_token;
    apr_int64_t before;    /* bytes received when it was claimed */
    atomic_llong received; /* bytes received by now */
    atomic_int state;      /* mdl_begun_state_t */
} mdl_begun_job_t;

/** Creates the table, which all processes forked later share. */
apr_status_t mdl_begun_create(mdl_begun_t **begun, apr_pool_t *p);

/** Adds a job in state NOT.  If the table is full, the job is allocated from p, and no successor
    knows it. */
mdl_begun_job_t *mdl_begun_add(mdl_begun_t *begun, const char *id, apr_int64_t lease_token,
                               apr_int64_t bytes_received, apr_pool_t *p);

/** Removes a job that the process is done with. */
void mdl_begun_remove(mdl_begun_job_t *job);

/** Removes all jobs. */
void mdl_begun_clear(mdl_begun_t *begun);

/** Records, in httpd's parent, whether the process that died had crashed. */
void mdl_begun_died(mdl_begun_t *begun, int crashed);

/** The jobs (const mdl_begun_job_t *) that may have caused the death of the process. */
apr_array_header_t *mdl_begun_list(const mdl_begun_t *begun, apr_pool_t *p);

#endif
