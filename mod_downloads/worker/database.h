/*
 * The control thread's connection to the database, which may be away for a while.
 */
#ifndef MDL_WORKER_DATABASE_H
#define MDL_WORKER_DATABASE_H

#include "core/settings/settings.h"
#include "db/db.h"

typedef struct mdl_worker_db_t mdl_worker_db_t;

mdl_worker_db_t *mdl_worker_db_create(const mdl_settings_t *settings, apr_pool_t *p);

/**
 * Connects unless that is done; while the database is away, at most one attempt a second and one
 * line in the log.  With DownloadsMigrate On the schema is brought up to date first, once.  Returns
 * how often a connection was made so far, 0 while there is none.
 */
int mdl_worker_db_connect(mdl_worker_db_t *database);

/** Runs an effect by mdl_db_write, or by mdl_db_read; a lost connection is made anew. */
apr_status_t mdl_worker_db_write(mdl_worker_db_t *database, mdl_effect_fn *effect, void *arg,
                                 apr_pool_t *p);
apr_status_t mdl_worker_db_read(mdl_worker_db_t *database, mdl_effect_fn *effect, void *arg,
                                apr_pool_t *p);

void mdl_worker_db_close(mdl_worker_db_t *database);

#endif
