/*
 * The background process's control thread: claims jobs, hands them to the threads of their lanes,
 * renews leases, writes results down.
 */
#ifndef MDL_WORKER_LOOP_H
#define MDL_WORKER_LOOP_H

#include "core/service.h"

/**
 * Works until stop_fd becomes readable, then gives unfinished jobs back and returns; that takes
 * less than a second.  Returns an error when it could not begin.
 */
apr_status_t mdl_worker_run(const mdl_service_t *service, int stop_fd, apr_pool_t *p);

#endif
