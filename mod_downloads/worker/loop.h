/*
 * The loop of the background process's control thread: each turn renews leases, settles ended
 * tasks, claims jobs, does due maintenance, and waits.
 */
#ifndef MDL_WORKER_LOOP_H
#define MDL_WORKER_LOOP_H

#include "core/service/service.h"

/**
 * Works under the name owner, whose jobs it takes over, until stop_fd becomes readable; then
 * releases unfinished jobs and returns within a second, or up to 2.7 while a mail server is
 * receiving an email.  Threads may still use p's memory afterwards, so the process must end.
 * Returns an error if it could not begin.
 */
apr_status_t mdl_loop_run(const mdl_service_t *service, const char *owner, int stop_fd,
                          apr_pool_t *p);

#endif
