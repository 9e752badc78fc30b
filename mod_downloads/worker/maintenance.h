/*
 * What the background process does from time to time beside jobs: it records when keys were used,
 * removes expired rows, settles downloads whose process has died, reads returned emails.
 */
#ifndef MDL_WORKER_MAINTENANCE_H
#define MDL_WORKER_MAINTENANCE_H

#include "core/service/service.h"
#include "db/reconnect.h"
#include "storage/storage.h"

typedef struct mdl_maintenance_t mdl_maintenance_t;

mdl_maintenance_t *mdl_maintenance_create(const mdl_service_t *service, mdl_storage_t *storage,
                                          mdl_reconnect_t *database, apr_pool_t *p);

/** Does what is due.  connections is what mdl_reconnect_connect has just returned. */
void mdl_maintenance_run(mdl_maintenance_t *maintenance, int connections, apr_pool_t *p);

/** When to call mdl_maintenance_run even if there is nothing else to do, by mdl_clock_monotonic. */
apr_time_t mdl_maintenance_due(const mdl_maintenance_t *maintenance);

/** Says that the clock was set forward: what rests for a time before it is removed rests anew. */
void mdl_maintenance_rest(mdl_maintenance_t *maintenance);

/** Runs what must be done once more before the process ends. */
void mdl_maintenance_finish(mdl_maintenance_t *maintenance, apr_pool_t *p);

#endif
