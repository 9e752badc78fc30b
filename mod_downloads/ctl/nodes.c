#include "ctl/nodes.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/version.h"
#include "core/node.h"

#define RESTART_WAIT apr_time_from_sec(5)
#define STEP         apr_time_from_msec(250)

MDL_EFFECT(mdl_node_list, apr_array_header_t **)

static int node_is_here(const mdl_ctl_t *ctl, const mdl_node_t *node)
{
    const char *pid_file = ctl->report.pid_file;

    return strcmp(node->host, mdl_node_host(ctl->p)) == 0 &&
           (pid_file == NULL || strcmp(node->pid_file, pid_file) == 0);
}

/* Where httpd was asked, its processes can be looked at, and one that was killed is missed at once.
 */
static int node_lives(const mdl_ctl_t *ctl, const mdl_node_t *node)
{
    if (ctl->report.pid_file != NULL && node_is_here(ctl, node) &&
        !mdl_httpd_process_runs(node->pid, ctl->p)) {
        return 0;
    }
    return node->silence < MDL_NODE_LOST;
}

/* One of this host, a live one if there is; NULL: none. */
static const mdl_node_t *node_here(const mdl_ctl_t *ctl, const apr_array_header_t *nodes)
{
    const mdl_node_t *here = NULL;

    for (int i = 0; i < nodes->nelts; i++) {
        const mdl_node_t *node = &APR_ARRAY_IDX(nodes, i, const mdl_node_t);

        if (node_is_here(ctl, node) && (here == NULL || node_lives(ctl, node))) {
            here = node;
        }
    }
    return here;
}

static apr_status_t nodes_read(mdl_ctl_t *ctl, apr_array_header_t **nodes)
{
    apr_time_t until = mdl_clock_monotonic() + RESTART_WAIT;
    int may_come = ctl->settings->worker && ctl->report.pid_file != NULL && !ctl->report.is_stopped;
    const mdl_node_t *here;
    apr_status_t rv;

    while ((rv = mdl_db_read(ctl->db, mdl_node_list_effect, nodes, ctl->p)) == APR_SUCCESS &&
           may_come && mdl_clock_monotonic() < until &&
           ((here = node_here(ctl, *nodes)) == NULL || !node_lives(ctl, here))) {
        apr_sleep(STEP);
    }
    return rv;
}

/* Of one of another host. */
static const char *node_trouble(const mdl_node_t *node, apr_pool_t *p)
{
    return apr_psprintf(p,
                        "The background process of %s (%s) has been silent for %" APR_INT64_T_FMT
                        " seconds: start httpd there, and see its error log.  A node that is gone "
                        "for good is forgotten a day after its last sign.",
                        node->host, node->pid_file, apr_time_sec(node->silence));
}

static const char *trouble_here(const mdl_ctl_t *ctl, const apr_array_header_t *nodes)
{
    const mdl_node_t *here = node_here(ctl, nodes);

    if (!ctl->settings->worker || (here != NULL && node_lives(ctl, here))) {
        return NULL;
    }
    if (here == NULL) {
        return "No background process of this host works on the database, so imports and emails "
               "wait: start httpd, or restart it if it runs, and see its error log.";
    }
    return apr_psprintf(ctl->p,
                        "The background process of this host, pid %" APR_INT64_T_FMT
                        ", has ended or hangs, silent for %" APR_INT64_T_FMT
                        " seconds; imports and emails wait: start httpd, or restart it if it runs, "
                        "and see its error log.",
                        here->pid, apr_time_sec(here->silence));
}

int mdl_ctl_nodes_live(mdl_ctl_t *ctl, const char **message)
{
    apr_array_header_t *nodes;
    apr_status_t rv = nodes_read(ctl, &nodes);
    const char *troubles = "";
    int alive = 0;

    if (rv != APR_SUCCESS) {
        *message = mdl_ctl_database_error(ctl, rv);
        return 0;
    }
    if ((*message = trouble_here(ctl, nodes)) != NULL) {
        return 0;
    }
    for (int i = 0; i < nodes->nelts; i++) {
        const mdl_node_t *node = &APR_ARRAY_IDX(nodes, i, const mdl_node_t);

        alive += node_lives(ctl, node);
        if (!node_lives(ctl, node)) {
            troubles = apr_pstrcat(ctl->p, troubles, *troubles ? "  " : "",
                                   node_trouble(node, ctl->p), NULL);
        }
    }
    *message = *troubles ? troubles
                         : "No node has a background process, so imports and emails wait: set "
                           "DownloadsWorker On on one of them, and restart its httpd.";
    return !*troubles && alive > 0;
}

int mdl_ctl_nodes_are_current(mdl_ctl_t *ctl, const char **message)
{
    apr_array_header_t *nodes;
    const char *others = "";

    *message = mdl_build_name();
    if (mdl_db_read(ctl->db, mdl_node_list_effect, &nodes, ctl->p) != APR_SUCCESS) {
        return 1; /* the database's own line says so */
    }
    for (int i = 0; i < nodes->nelts; i++) {
        const mdl_node_t *node = &APR_ARRAY_IDX(nodes, i, const mdl_node_t);

        if (!node_lives(ctl, node) || strcmp(node->build, mdl_build_name()) == 0) {
            continue;
        }
        others = apr_pstrcat(
            ctl->p, others, "  ",
            node_is_here(ctl, node)
                ? apr_psprintf(ctl->p, "httpd still runs %s: restart it.", node->build)
                : apr_psprintf(ctl->p,
                               "%s runs %s: install the same build there, and "
                               "restart its httpd.",
                               node->host, node->build),
            NULL);
    }
    if (*others) {
        *message = apr_pstrcat(ctl->p, "Installed is ", mdl_build_name(), ".", others, NULL);
    }
    return !*others;
}
