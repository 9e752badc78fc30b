/*
 * The background process: forked by httpd's parent, kept alive by it, gone with it.
 */
#ifndef MDL_PARENT_PROCESS_H
#define MDL_PARENT_PROCESS_H

#include <httpd.h>

#include "core/service/service.h"

/**
 * The descriptor that wakes the background process: made once for the life of httpd's parent, so
 * that a request of a child from before a graceful restart still wakes the process after it.
 * Returns -1 when there is none to be had.
 */
int mdl_process_wake_fd(void);

/** Forks the background process; it ends with pconf.  To be called in post_config.  A fork that
   fails is tried again, later and later, up to every half minute. */
void mdl_process_start(const mdl_service_t *service, server_rec *s, apr_pool_t *pconf);

/** Registers the hook that tries again. */
void mdl_process_register(void);

#endif
