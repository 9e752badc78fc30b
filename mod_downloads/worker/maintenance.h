/*
 * What the background process does now and then beside jobs.
 */
#ifndef MDL_WORKER_MAINTENANCE_H
#define MDL_WORKER_MAINTENANCE_H

#include "core/service.h"
#include "storage/storage.h"
#include "worker/database.h"

typedef struct mdl_chores_t mdl_chores_t;

mdl_chores_t *mdl_chores_create(const mdl_service_t *service, mdl_storage_t *storage,
                                mdl_worker_db_t *database, apr_pool_t *p);

/** Does what is due; connections as mdl_worker_db_connect has just said. */
void mdl_chores_run(mdl_chores_t *chores, int connections, apr_pool_t *p);

/** When to run them even if there is nothing else to do: when emails that came back are read. */
apr_time_t mdl_chores_due(const mdl_chores_t *chores);

/** The last one. */
void mdl_chores_finish(mdl_chores_t *chores, apr_pool_t *p);

#endif
