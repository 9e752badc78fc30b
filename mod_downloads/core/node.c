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

static apr_status_t node_write(mdl_db_t *db, const char *host, const char *pid_file, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_NODE_BEAT, NULL, p,
                       MDL_ARGS(mdl_text(host), mdl_text(pid_file), mdl_int(getpid()),
                                mdl_text(mdl_build_name())));
}

apr_status_t mdl_node_beat(mdl_db_t *db, apr_pool_t *p, const char *pid_file)
{
    apr_status_t rv = node_write(db, mdl_node_host(p), pid_file, p);

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, MDL_Q_NODES_FORGET, NULL, p, MDL_ARGS(mdl_int(MDL_NODE_KEPT)))
               : rv;
}

static apr_status_t node_remove(mdl_db_t *db, const char *host, const char *pid_file, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_NODE_REMOVE, NULL, p,
                       MDL_ARGS(mdl_text(host), mdl_text(pid_file)));
}

apr_status_t mdl_node_leave(mdl_db_t *db, apr_pool_t *p, const char *pid_file)
{
    return node_remove(db, mdl_node_host(p), pid_file, p);
}

apr_status_t mdl_node_list(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **nodes)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, MDL_Q_NODES, &rows, p, MDL_NO_ARGS);

    *nodes = apr_array_make(p, 4, sizeof(mdl_node_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*nodes, mdl_node_t) = (mdl_node_t){.host = mdl_rows_text(rows, 0),
                                                          .pid_file = mdl_rows_text(rows, 1),
                                                          .pid = mdl_rows_int(rows, 2),
                                                          .build = mdl_rows_text(rows, 3),
                                                          .silence = mdl_rows_int(rows, 4)};
    }
    return rv;
}

apr_status_t mdl_node_time(mdl_db_t *db, apr_pool_t *p, apr_time_t *now)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_NODE_TIME, &row, p, MDL_NO_ARGS);

    if (rv == APR_SUCCESS) {
        *now = mdl_rows_int(row, 0);
    }
    return rv;
}

apr_status_t mdl_node_try_write(mdl_db_t *db, apr_pool_t *p, void *unused)
{
    const char *name = mdl_ulid("try_", p); /* nobody waits for another one's row */
    apr_status_t rv = node_write(db, "", name, p);

    (void)unused;
    return rv == APR_SUCCESS ? node_remove(db, "", name, p) : rv;
}
