#include "core/node.h"

#include <unistd.h>

#include <apr_strings.h>

#include "base/ulid.h"
#include "base/version.h"

#define HOST_MAX 255 /* bytes */

const char *mdl_node_host(apr_pool_t *p)
{
    char host[HOST_MAX + 1] = "localhost";

    gethostname(host, HOST_MAX);
    host[HOST_MAX] = '\0';
    return apr_pstrdup(p, host);
}

static apr_status_t node_write(mdl_db_t *db, const char *host, const char *pid_file,
                               int connections, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(NODE_BEAT, .host = host, .pid_file = pid_file, .pid = getpid(),
                             .build = mdl_build_name(), .connections = connections));
}

apr_status_t mdl_node_beat(mdl_db_t *db, apr_pool_t *p, mdl_node_beat_t *beat)
{
    mdl_rows_t *row;
    apr_status_t rv = node_write(db, mdl_node_host(p), beat->pid_file, beat->connections, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, NULL, p, MDL_Q(NODES_FORGET, MDL_NODE_KEPT));
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(db, &row, p, MDL_Q(NODES_LIVE, MDL_NODE_LOST));
    }
    if (rv == APR_SUCCESS) {
        beat->live = (int)mdl_rows_int(row, 0);
    }
    return rv;
}

int mdl_node_share(int whole, int live)
{
    return whole > live ? whole / live : whole > 0;
}

static apr_status_t node_remove(mdl_db_t *db, const char *host, const char *pid_file, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(NODE_REMOVE, .host = host, .pid_file = pid_file));
}

apr_status_t mdl_node_leave(mdl_db_t *db, apr_pool_t *p, const char *pid_file)
{
    return node_remove(db, mdl_node_host(p), pid_file, p);
}

apr_status_t mdl_node_list(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **nodes)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(NODES));

    *nodes = apr_array_make(p, 4, sizeof(mdl_node_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*nodes,
                       mdl_node_t) = (mdl_node_t){.host = MDL_TEXT(rows, nodes, host),
                                                  .pid_file = MDL_TEXT(rows, nodes, pid_file),
                                                  .pid = MDL_INT(rows, nodes, pid),
                                                  .build = MDL_TEXT(rows, nodes, build),
                                                  .connections = MDL_INT(rows, nodes, connections),
                                                  .silence = MDL_INT(rows, nodes, silence)};
    }
    return rv;
}

apr_status_t mdl_node_time(mdl_db_t *db, apr_pool_t *p, apr_time_t *now)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(NODE_TIME));

    if (rv == APR_SUCCESS) {
        *now = mdl_rows_int(row, 0);
    }
    return rv;
}

apr_status_t mdl_node_try_write(mdl_db_t *db, apr_pool_t *p, void *unused)
{
    const char *name = mdl_ulid("try_", p); /* its own row, so that nobody waits for a lock */
    apr_status_t rv = node_write(db, "", name, 0, p);

    (void)unused;
    return rv == APR_SUCCESS ? node_remove(db, "", name, p) : rv;
}
