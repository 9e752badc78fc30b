/*
 * Forking a child of httpd's parent outside of the MPM.
 */
#ifndef MDL_WORKER_FORK_H
#define MDL_WORKER_FORK_H

#include <signal.h>

#include <apr_thread_proc.h>

/**
 * Forks with all signals blocked: the child inherits the MPM's handlers and must get no signal
 * before it sets its own.  Returns APR_INCHILD, with signals still blocked and the mask to restore
 * in *unblocked, APR_INPARENT, or an error.
 */
apr_status_t mdl_fork(apr_proc_t *process, apr_pool_t *p, sigset_t *unblocked);

#endif
