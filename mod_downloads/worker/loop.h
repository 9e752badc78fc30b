/*
 * The loop of the background process's control thread: in each turn it renews leases, settles ended
 * tasks, claims jobs and does the maintenance that is due; then it waits.
 */
#ifndef MDL_WORKER_LOOP_H
#define MDL_WORKER_LOOP_H

#include "core/service/service.h"

/**
 * Works in the name of owner, whose jobs it takes over, until stop_fd becomes readable, then gives
 * unfinished jobs back and returns; that takes less than a second, or up to 2.7 where a mail server
 * is taking an email.  Threads may go on in p's memory then: the process is to end.  Returns an
 * error if it could not begin.
 */
apr_status_t mdl_loop_run(const mdl_service_t *service, const char *owner, int stop_fd,
                          apr_pool_t *p);

#endif
