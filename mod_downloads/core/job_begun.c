#include "core/job_begun.h"

#include <string.h>

#include <apr_shm.h>
#include <apr_strings.h>

#define JOBS 1024 /* more than all lanes have slots */

struct mdl_begun_t {
    atomic_int crashed; /* the previous process */
    mdl_begun_job_t jobs[JOBS];
};

apr_status_t mdl_begun_create(mdl_begun_t **begun, apr_pool_t *p)
{
    apr_shm_t *shm;
    apr_status_t rv = apr_shm_create(&shm, sizeof **begun, NULL, p);

    if (rv == APR_SUCCESS) {
        *begun = apr_shm_baseaddr_get(shm);
        mdl_begun_clear(*begun);
    }
    return rv;
}

mdl_begun_job_t *mdl_begun_add(mdl_begun_t *begun, const char *id, apr_int64_t lease_token,
                               apr_int64_t bytes_received, apr_pool_t *p)
{
    mdl_begun_job_t *job = begun->jobs;

    while (job < begun->jobs + JOBS && job->id[0] != '\0') {
        job++;
    }
    if (job == begun->jobs + JOBS) {
        job = apr_pcalloc(p, sizeof *job);
    }
    atomic_store(&job->state, MDL_BEGUN_NOT);
    atomic_store(&job->received, bytes_received);
    job->lease_token = lease_token;
    job->before = bytes_received;
    apr_cpystrn(job->id, id, sizeof job->id);
    return job;
}

void mdl_begun_remove(mdl_begun_job_t *job)
{
    atomic_store(&job->state, MDL_BEGUN_NOT);
    job->id[0] = '\0';
}

void mdl_begun_clear(mdl_begun_t *begun)
{
    for (int i = 0; i < JOBS; i++) {
        mdl_begun_remove(&begun->jobs[i]);
    }
    atomic_store(&begun->crashed, 0);
}

void mdl_begun_died(mdl_begun_t *begun, int crashed)
{
    atomic_store(&begun->crashed, crashed);
}

apr_array_header_t *mdl_begun_list(const mdl_begun_t *begun, apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, 16, sizeof(const mdl_begun_job_t *));
    int blamed = atomic_load(&begun->crashed) ? MDL_BEGUN_WAITS : MDL_BEGUN_WORKS;

    for (int i = 0; i < JOBS; i++) {
        if (atomic_load(&begun->jobs[i].state) >= blamed) {
            APR_ARRAY_PUSH(list, const mdl_begun_job_t *) = &begun->jobs[i];
        }
    }
    return list;
}
