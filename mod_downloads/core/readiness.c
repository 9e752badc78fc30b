#include "core/readiness.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <apr_shm.h>

#include "base/clock.h"
#include "core/node.h"

#define LOOK       apr_time_from_sec(5)
#define FIRST_WAIT apr_time_from_sec(10)
#define STEP       apr_time_from_msec(20)

enum { DATABASE = 1, STORAGE = 2, WORKER = 4 };

struct mdl_readiness_t {
    atomic_llong claimed_at; /* 0: nobody has checked yet */
    atomic_int found;        /* sum of these; -1: no result yet */
    atomic_llong beat_at;
    atomic_int pid;
};

apr_status_t mdl_readiness_create(mdl_readiness_t **readiness, apr_pool_t *p)
{
    apr_shm_t *shm;
    apr_status_t rv = apr_shm_create(&shm, sizeof **readiness, NULL, p);

    if (rv == APR_SUCCESS) {
        *readiness = apr_shm_baseaddr_get(shm);
        memset(*readiness, 0, sizeof **readiness);
        atomic_store(&(*readiness)->found, -1);
    }
    return rv;
}

void mdl_readiness_beat(mdl_readiness_t *readiness)
{
    atomic_store(&readiness->beat_at, mdl_clock_monotonic());
    atomic_store(&readiness->pid, getpid());
}

int mdl_readiness_has_worker(const mdl_readiness_t *readiness)
{
    pid_t pid = atomic_load(&readiness->pid);

    return pid != 0 && (kill(pid, 0) == 0 || errno == EPERM) &&
           mdl_clock_monotonic() - atomic_load(&readiness->beat_at) < MDL_NODE_LOST;
}

/* The time counts from the claim: if its holder dies or hangs, somebody else checks after it. */
int mdl_readiness_claim(mdl_readiness_t *readiness)
{
    long long claimed = atomic_load(&readiness->claimed_at);
    apr_time_t now = mdl_clock_monotonic();

    return (claimed == 0 || now - claimed >= LOOK) &&
           atomic_compare_exchange_strong(&readiness->claimed_at, &claimed, now);
}

void mdl_readiness_set(mdl_readiness_t *readiness, const mdl_ready_t *ready)
{
    atomic_store(&readiness->found, (ready->database ? DATABASE : 0) |
                                        (ready->storage ? STORAGE : 0) |
                                        (ready->worker ? WORKER : 0));
}

mdl_ready_t mdl_readiness_get(const mdl_readiness_t *readiness)
{
    apr_time_t until = mdl_clock_monotonic() + FIRST_WAIT;
    int found;

    while ((found = atomic_load(&readiness->found)) < 0 && mdl_clock_monotonic() < until) {
        apr_sleep(STEP);
    }
    found = found < 0 ? 0 : found;
    return (mdl_ready_t){.database = (found & DATABASE) != 0,
                         .storage = (found & STORAGE) != 0,
                         .worker = (found & WORKER) != 0};
}
