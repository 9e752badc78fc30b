/*
 * Removes from storage what the database doesn't know, or no longer refers to.  Each function does
 * about a second of it, and returns the time until it is due again.
 */
#ifndef MDL_WORKER_SWEEP_H
#define MDL_WORKER_SWEEP_H

#include "db/reconnect.h"
#include "storage/storage.h"

/* A released blob stays this long, for transfers that are still running. */
#define MDL_SWEEP_REST apr_time_from_sec(3600)

typedef struct mdl_sweep_t mdl_sweep_t;

mdl_sweep_t *mdl_sweep_create(mdl_storage_t *storage, mdl_reconnect_t *database, apr_pool_t *p);

/** Aborts expired uploads, and removes the partial files of ended uploads and jobs. */
apr_interval_time_t mdl_sweep_uploads(mdl_sweep_t *sweep, apr_pool_t *p);

/**
 * Removes blobs MDL_SWEEP_REST after their last reference, and forgets former versions that are no
 * longer kept.
 */
apr_interval_time_t mdl_sweep_blobs(mdl_sweep_t *sweep, apr_pool_t *p);

/** Scans one shard of storage for files unknown to the database, left by a kill. */
apr_interval_time_t mdl_sweep_orphans(mdl_sweep_t *sweep, apr_pool_t *p);

#endif
