/*
 * Which jobs the background process has begun, and how far each has come: in memory that outlives
 * it, so that its successor knows which of them its death may have been the fault of.
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
    MDL_BEGUN_WAITS, /* it talks to another host and does nothing else: a crash of the process may
                        be its fault, but no kill from outside, nor that there is no memory left */
    MDL_BEGUN_WORKS  /* any death of the process may be its fault */
} mdl_begun_state_t;

/** A job that the process has claimed. */
typedef struct {
    char id[8 + MDL_ULID_LENGTH]; /* "" where there is none */
    apr_int64_t lease_token;
    apr_int64_t before;    /* bytes that it had when it was claimed */
    atomic_llong received; /* bytes that it has now */
    atomic_int state;      /* mdl_begun_state_t */
} mdl_begun_job_t;

/** Creates the table, which all processes share that are forked afterwards. */
apr_status_t mdl_begun_create(mdl_begun_t **begun, apr_pool_t *p);

/** Adds a job with which nobody has begun.  A process that has more jobs than the table takes gets
    one in p, of which no successor knows. */
mdl_begun_job_t *mdl_begun_add(mdl_begun_t *begun, const char *id, apr_int64_t lease_token,
                               apr_int64_t bytes_received, apr_pool_t *p);

/** The process has no longer to do with the job. */
void mdl_begun_remove(mdl_begun_job_t *job);

/** Removes all jobs. */
void mdl_begun_clear(mdl_begun_t *begun);

/** Notes, in httpd's parent, how the process has died: whether it has crashed. */
void mdl_begun_died(mdl_begun_t *begun, int crashed);

/** The jobs of a process that is dead whose fault that may have been: const mdl_begun_job_t *. */
apr_array_header_t *mdl_begun_list(const mdl_begun_t *begun, apr_pool_t *p);

#endif
