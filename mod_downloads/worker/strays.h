/*
 * Removes objects that no blob has (core/catalog/stray_object.h), in a thread of its own, since the
 * control thread must not wait for the store.
 */
#ifndef MDL_WORKER_STRAYS_H
#define MDL_WORKER_STRAYS_H

#include "core/catalog/stray_object.h"
#include "db/reconnect.h"
#include "storage/storage.h"

typedef struct mdl_strays_t mdl_strays_t;

/** NULL if storage has no object store.  The thread has ended when p is destroyed. */
mdl_strays_t *mdl_strays_create(mdl_storage_t *storage, mdl_reconnect_t *database, apr_pool_t *p);

/** Takes the thread's results, and gives it the next keys.  Returns whether it is at work. */
int mdl_strays_run(mdl_strays_t *strays, apr_time_t now, apr_pool_t *p);

#endif
