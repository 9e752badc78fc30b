#include "core/health/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/version.h"
#include "core/job.h"
#include "core/node.h"

#define RESTART_WAIT apr_time_from_sec(5)
#define STEP         apr_time_from_msec(250)
#define MAX_WAIT     apr_time_from_sec(60) /* of a due job; longer means that no worker takes jobs */
#define MAX_SEARCHED 1000

MDL_EFFECT(mdl_node_list, apr_array_header_t **)

int mdl_health_process_runs(apr_int64_t pid, apr_pool_t *p)
{
    FILE *file = fopen(apr_psprintf(p, "/proc/%" APR_INT64_T_FMT "/stat", pid), "re");
    char state = '?';

    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
            state = '?';
        }
        fclose(file);
    }
    return pid > 0 && state != 'Z' && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

static int node_is_here(const mdl_health_t *health, const mdl_node_t *node)
{
    const char *pid_file = health->pid_file;

    return strcmp(node->host, mdl_node_host(health->p)) == 0 &&
           (pid_file == NULL || strcmp(node->pid_file, pid_file) == 0);
}

/* If this host's httpd is known, its processes are checked, so a killed one is noticed at once. */
static int node_lives(const mdl_health_t *health, const mdl_node_t *node)
{
    if (health->pid_file != NULL && node_is_here(health, node) &&
        !mdl_health_process_runs(node->pid, health->p)) {
        return 0;
    }
    return node->silence < MDL_NODE_LOST;
}

/* The node of this host, preferably a live one; NULL: none. */
static const mdl_node_t *node_here(const mdl_health_t *health, const apr_array_header_t *nodes)
{
    const mdl_node_t *here = NULL;

    for (int i = 0; i < nodes->nelts; i++) {
        const mdl_node_t *node = &APR_ARRAY_IDX(nodes, i, const mdl_node_t);

        if (node_is_here(health, node) && (here == NULL || node_lives(health, node))) {
            here = node;
        }
    }
    return here;
}

static apr_status_t nodes_read(const mdl_health_t *health, apr_array_header_t **nodes)
{
    apr_time_t until = mdl_clock_monotonic() + RESTART_WAIT;
    int may_come = health->settings->worker && health->httpd_runs;
    const mdl_node_t *here;
    apr_status_t rv;

    while ((rv = mdl_db_read(health->db, mdl_node_list_effect, nodes, health->p)) == APR_SUCCESS &&
           may_come && mdl_clock_monotonic() < until &&
           ((here = node_here(health, *nodes)) == NULL || !node_lives(health, here))) {
        apr_sleep(STEP);
    }
    return rv;
}

/* What is wrong with a node of another host. */
static const char *node_trouble(const mdl_node_t *node, apr_pool_t *p)
{
    return apr_psprintf(p,
                        "The background process of %s (%s) has been silent for %" APR_INT64_T_FMT
                        " seconds: start httpd there, and see its error log.  A node that is gone "
                        "for good is forgotten a day after its last sign.",
                        node->host, node->pid_file, apr_time_sec(node->silence));
}

static const char *trouble_here(const mdl_health_t *health, const apr_array_header_t *nodes)
{
    const mdl_node_t *here = node_here(health, nodes);

    if (!health->settings->worker || (here != NULL && node_lives(health, here))) {
        return NULL;
    }
    if (here == NULL) {
        return "No background process of this host works on the database, so imports and emails "
               "wait: start httpd, or restart it if it runs, and see its error log.";
    }
    return apr_psprintf(health->p,
                        "The background process of this host, pid %" APR_INT64_T_FMT
                        ", has ended or hangs, silent for %" APR_INT64_T_FMT
                        " seconds; imports and emails wait: start httpd, or restart it if it runs, "
                        "and see its error log.",
                        here->pid, apr_time_sec(here->silence));
}

static int nodes_live(const mdl_health_t *health, const char **message)
{
    apr_array_header_t *nodes;
    apr_status_t rv = nodes_read(health, &nodes);
    const char *troubles = "";
    int alive = 0;

    if (rv != APR_SUCCESS) {
        *message = mdl_health_database_error(rv, mdl_db_error(health->db), health->p);
        return 0;
    }
    if ((*message = trouble_here(health, nodes)) != NULL) {
        return 0;
    }
    for (int i = 0; i < nodes->nelts; i++) {
        const mdl_node_t *node = &APR_ARRAY_IDX(nodes, i, const mdl_node_t);

        alive += node_lives(health, node);
        if (!node_lives(health, node)) {
            troubles = apr_pstrcat(health->p, troubles, *troubles ? "  " : "",
                                   node_trouble(node, health->p), NULL);
        }
    }
    *message = *troubles ? troubles
                         : "No node has a background process, so imports and emails wait: set "
                           "DownloadsWorker On on one of them, and restart its httpd.";
    return !*troubles && alive > 0;
}

int mdl_health_build(const mdl_health_t *health, const char **message)
{
    apr_array_header_t *nodes;
    const char *others = "";

    *message = mdl_build_name();
    if (mdl_db_read(health->db, mdl_node_list_effect, &nodes, health->p) != APR_SUCCESS) {
        return 1; /* the check of the database reports it */
    }
    for (int i = 0; i < nodes->nelts; i++) {
        const mdl_node_t *node = &APR_ARRAY_IDX(nodes, i, const mdl_node_t);

        if (!node_lives(health, node) || strcmp(node->build, mdl_build_name()) == 0) {
            continue;
        }
        others = apr_pstrcat(
            health->p, others, "  ",
            node_is_here(health, node)
                ? apr_psprintf(health->p, "httpd still runs %s: restart it.", node->build)
                : apr_psprintf(health->p,
                               "%s runs %s: install the same build there, and "
                               "restart its httpd.",
                               node->host, node->build),
            NULL);
    }
    if (*others) {
        *message = apr_pstrcat(health->p, "Installed is ", mdl_build_name(), ".", others, NULL);
    }
    return !*others;
}

typedef struct {
    mdl_job_look_t look;
    mdl_job_list_t newest;
} queue_t;

static apr_status_t queue_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    queue_t *queue = arg;
    apr_status_t rv = mdl_job_list(db, p, &queue->newest);

    return rv == APR_SUCCESS ? mdl_job_look(db, p, &queue->look) : rv;
}

/* Whether a worker runs a job of the lane: then other jobs wait for a slot, not for a worker. */
static int lane_is_busy(const queue_t *queue, mdl_job_lane_t lane, apr_time_t renewed)
{
    for (int i = 0; i < queue->newest.jobs->nelts; i++) {
        const mdl_job_t *job = APR_ARRAY_IDX(queue->newest.jobs, i, const mdl_job_t *);

        if (job->lane == lane && job->status == MDL_JOB_RUNNING && job->updated_at > renewed) {
            return 1;
        }
    }
    return 0;
}

int mdl_health_worker(const mdl_health_t *health, const char **message)
{
    apr_time_t now = apr_time_now();
    queue_t queue = {.look = {.until = now}, .newest = {.limit = MAX_SEARCHED}};
    apr_status_t rv;

    if (health->db == NULL) {
        *message = "Not tried: the database comes first.";
        return 0;
    }
    if (!nodes_live(health, message)) {
        return 0;
    }
    rv = mdl_db_read(health->db, queue_read, &queue, health->p);
    if (rv != APR_SUCCESS) {
        *message = mdl_health_database_error(rv, mdl_db_error(health->db), health->p);
        return 0;
    }
    for (mdl_job_lane_t i = 0; i < MDL_LANES; i++) {
        apr_time_t due_at = queue.look.due_at[i];

        if (due_at != 0 && now - due_at > MAX_WAIT &&
            !lane_is_busy(&queue, i, now - health->settings->lease_time)) {
            *message = apr_psprintf(
                health->p,
                "No background process seems to take jobs: the oldest of lane %s "
                "has waited for %" APR_INT64_T_FMT " seconds.  Start httpd with "
                "DownloadsWorker On, and see its error log.",
                mdl_job_lane_names[i], apr_time_sec(now - due_at));
            return 0;
        }
    }
    *message = "no job waits for a background process";
    return 1;
}
