/*
 * Reads returned emails from the mailbox DownloadsMailBounces.
 */
#ifndef MDL_WORKER_BOUNCES_H
#define MDL_WORKER_BOUNCES_H

#include "core/service/service.h"
#include "db/reconnect.h"

typedef struct mdl_bounces_t mdl_bounces_t;

/** NULL if the settings name no mailbox. */
mdl_bounces_t *mdl_bounces_create(const mdl_service_t *service, mdl_reconnect_t *database,
                                  apr_pool_t *p);

/** Records which emails came back, for a bounded time; true if there are more.  A message about
    none of our emails is moved away too; while the database is unreachable, all messages stay. */
int mdl_bounces_read(mdl_bounces_t *bounces, apr_pool_t *p);

/** Removes some of the processed messages older than a time; true if there may be more. */
int mdl_bounces_prune(const mdl_bounces_t *bounces, apr_time_t before, apr_pool_t *p);

#endif
