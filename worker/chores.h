/*
 * What the background process does now and then beside jobs.
 */
#ifndef MDL_WORKER_CHORES_H
#define MDL_WORKER_CHORES_H

#include "core/service.h"
#include "storage/storage.h"
#include "worker/database.h"

/** Writes down when keys were used last. */
void mdl_chores_report_keys(const mdl_service_t *service, mdl_worker_db_t *database, apr_pool_t *p);

/** Aborts uploads that have expired, and removes the partial files of uploads and jobs that are
    over. */
void mdl_chores_sweep_uploads(mdl_storage_t *storage, mdl_worker_db_t *database, apr_pool_t *p);

/** Removes what nothing refers to any more from storage, an hour after it was let go. */
void mdl_chores_sweep_blobs(mdl_storage_t *storage, mdl_worker_db_t *database, apr_pool_t *p);

/** Ends download sessions that are idle, and settles the transfers of processes that are gone. */
void mdl_chores_sweep_downloads(const mdl_service_t *service, mdl_worker_db_t *database,
                                apr_pool_t *p);

/** Deletes answers past their retention, for a bounded time; true when there are more. */
int mdl_chores_prune(const mdl_service_t *service, mdl_worker_db_t *database, apr_pool_t *p);

#endif
