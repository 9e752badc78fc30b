/*
 * What the background process does now and then beside jobs.
 */
#ifndef MDL_WORKER_MAINTENANCE_H
#define MDL_WORKER_MAINTENANCE_H

#include "core/service.h"
#include "db/reconnect.h"
#include "storage/storage.h"

typedef struct mdl_maintenance_t mdl_maintenance_t;

mdl_maintenance_t *mdl_maintenance_create(const mdl_service_t *service, mdl_storage_t *storage,
                                          mdl_reconnect_t *database, apr_pool_t *p);

/** Does what is due; connections as mdl_reconnect_connect has just returned. */
void mdl_maintenance_run(mdl_maintenance_t *maintenance, int connections, apr_pool_t *p);

/** When to run them even if there is nothing else to do: when emails that came back are read. */
apr_time_t mdl_maintenance_due(const mdl_maintenance_t *maintenance);

/** The last one. */
void mdl_maintenance_finish(mdl_maintenance_t *maintenance, apr_pool_t *p);

#endif
