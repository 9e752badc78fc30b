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

enum { DATABASE = 1, STORAGE = 2, WORKER = 4, CLOSED = 8 };
enum { FOLDER = 1, OBJECTS = 2 };

/* What a check has found. */
typedef struct {
    atomic_llong claimed_at; /* 0: nobody has checked yet */
    atomic_int found;        /* sum of the above; -1: no result yet */
} result_t;

struct mdl_readiness_t {
    result_t ready;
    result_t places;
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
        atomic_store(&(*readiness)->ready.found, -1);
        atomic_store(&(*readiness)->places.found, -1);
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

apr_interval_time_t mdl_readiness_beat_age(const mdl_readiness_t *readiness)
{
    long long beat_at = atomic_load(&readiness->beat_at);

    return beat_at != 0 ? mdl_clock_monotonic() - beat_at : -1;
}

/* The time counts from the claim: if its holder dies or hangs, somebody else checks after it. */
static int result_claim(result_t *result)
{
    long long claimed = atomic_load(&result->claimed_at);
    apr_time_t now = mdl_clock_monotonic();

    return (claimed == 0 || now - claimed >= LOOK) &&
           atomic_compare_exchange_strong(&result->claimed_at, &claimed, now);
}

static int result_get(const result_t *result)
{
    apr_time_t until = mdl_clock_monotonic() + FIRST_WAIT;
    int found;

    while ((found = atomic_load(&result->found)) < 0 && mdl_clock_monotonic() < until) {
        apr_sleep(STEP);
    }
    return found < 0 ? 0 : found;
}

int mdl_readiness_claim(mdl_readiness_t *readiness)
{
    return result_claim(&readiness->ready);
}

void mdl_readiness_set(mdl_readiness_t *readiness, const mdl_ready_t *ready)
{
    atomic_store(&readiness->ready.found,
                 (ready->database ? DATABASE : 0) | (ready->storage ? STORAGE : 0) |
                     (ready->worker ? WORKER : 0) | (ready->closed ? CLOSED : 0));
}

mdl_ready_t mdl_readiness_get(const mdl_readiness_t *readiness)
{
    int found = result_get(&readiness->ready);

    return (mdl_ready_t){.database = (found & DATABASE) != 0,
                         .storage = (found & STORAGE) != 0,
                         .worker = (found & WORKER) != 0,
                         .closed = (found & CLOSED) != 0};
}

int mdl_readiness_claim_places(mdl_readiness_t *readiness)
{
    return result_claim(&readiness->places);
}

void mdl_readiness_set_places(mdl_readiness_t *readiness, const mdl_places_ready_t *ready)
{
    atomic_store(&readiness->places.found,
                 (ready->folder ? FOLDER : 0) | (ready->objects ? OBJECTS : 0));
}

mdl_places_ready_t mdl_readiness_get_places(const mdl_readiness_t *readiness)
{
    int found = result_get(&readiness->places);

    return (mdl_places_ready_t){.folder = (found & FOLDER) != 0, .objects = (found & OBJECTS) != 0};
}
