/*
 * A child of httpd's parent that is none of the MPM's.
 */
#ifndef MDL_WORKER_FORK_H
#define MDL_WORKER_FORK_H

#include <signal.h>

#include <apr_thread_proc.h>

/**
 * Forks with all signals held back: the child inherits the MPM's handlers and must not meet a
 * signal before it has its own.  Returns APR_INCHILD, with signals still held back and *unblocked
 * what to set then, APR_INPARENT, or an error.
 */
apr_status_t mdl_fork(apr_proc_t *process, apr_pool_t *p, sigset_t *unblocked);

#endif
