/*
 * Periodic work of the background process besides jobs: records when keys were used, removes
 * expired rows, settles downloads of dead processes, reads returned emails.
 */
#ifndef MDL_WORKER_MAINTENANCE_H
#define MDL_WORKER_MAINTENANCE_H

#include "core/service/service.h"
#include "db/reconnect.h"
#include "storage/storage.h"

typedef struct mdl_maintenance_t mdl_maintenance_t;

mdl_maintenance_t *mdl_maintenance_create(const mdl_service_t *service, mdl_storage_t *storage,
                                          mdl_reconnect_t *database, apr_pool_t *p);

/** Does the due work.  connections is mdl_reconnect_connect's latest result. */
void mdl_maintenance_run(mdl_maintenance_t *maintenance, int connections, apr_pool_t *p);

/** The live nodes by the heartbeats, this one included; 0 before the first. */
int mdl_maintenance_live_nodes(const mdl_maintenance_t *maintenance);

/** When mdl_maintenance_run is due next, by mdl_clock_monotonic. */
apr_time_t mdl_maintenance_due(const mdl_maintenance_t *maintenance);

/** Call it when the clock was set forward: grace periods before removals start again. */
void mdl_maintenance_rest(mdl_maintenance_t *maintenance);

/** The last run before the process ends. */
void mdl_maintenance_finish(mdl_maintenance_t *maintenance, apr_pool_t *p);

#endif
