#include "worker/fork.h"

apr_status_t mdl_fork(apr_proc_t *process, apr_pool_t *p, sigset_t *unblocked)
{
    sigset_t all;
    apr_status_t rv;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, unblocked);
    rv = apr_proc_fork(process, p);
    if (rv != APR_INCHILD) {
        sigprocmask(SIG_SETMASK, unblocked, NULL);
    }
    return rv;
}
