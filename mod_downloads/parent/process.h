/*
 * The background process: httpd's parent forks it, restarts it if it dies, and ends it.
 */
#ifndef MDL_PARENT_PROCESS_H
#define MDL_PARENT_PROCESS_H

#include <httpd.h>

#include "core/service/service.h"

/**
 * The descriptor that wakes the background process, made once for the life of httpd's parent: a
 * child from before a graceful restart can wake the new process.  -1 if it can't be made.
 */
int mdl_process_wake_fd(void);

/** The memory of mdl_service_t.database_told, made once for the life of httpd's parent too. */
atomic_int *mdl_process_database_told(void);

/** Forks the background process, which ends with pconf.  Call it in post_config.  A failed fork is
    retried with growing delays, up to half a minute. */
void mdl_process_start(const mdl_service_t *service, server_rec *s, apr_pool_t *pconf);

/** Registers the hook that retries a failed fork. */
void mdl_process_register(void);

#endif
