#include "core/health/pgsql.h"

#include <apr_strings.h>

#include "core/node.h"

int mdl_health_sessions(const mdl_health_t *health, mdl_db_t *db, const char **message)
{
    const char *why;
    int kept;
    apr_status_t rv = mdl_db_keeps_session(db, health->settings->db_params, &kept, &why, health->p);

    if (rv != APR_SUCCESS) {
        *message = mdl_health_database_error(rv, why, health->p);
    } else if (!kept) {
        *message = "A pooler in front of PostgreSQL gives each transaction another connection, "
                   "where prepared statements and settings are missing, so that most transactions "
                   "run twice: set pool_mode = session in PgBouncer, or connect to PostgreSQL "
                   "itself.";
    }
    return rv == APR_SUCCESS && kept;
}

typedef struct {
    apr_int64_t most; /* max_connections */
    apr_int64_t reserved;
    apr_int64_t used;
    apr_int64_t others; /* used by other databases and roles */
    apr_array_header_t *nodes;
} connections_t;

static apr_status_t connections_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    connections_t *found = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(CONNECTIONS));

    if (rv == APR_SUCCESS) {
        MDL_READ(row, connections, found, most, reserved, used, others);
        rv = mdl_node_list(db, p, &found->nodes);
    }
    return rv;
}

const char *mdl_health_connections(const mdl_health_t *health)
{
    apr_pool_t *p = health->p;
    connections_t found;
    apr_int64_t needed = 0;
    int live = 0;

    if (mdl_db_dialect(health->db) != MDL_PGSQL ||
        mdl_db_read(health->db, connections_read, &found, p) != APR_SUCCESS) {
        return "";
    }
    for (int i = 0; i < found.nodes->nelts; i++) {
        const mdl_node_t *node = &APR_ARRAY_IDX(found.nodes, i, const mdl_node_t);

        if (node->silence < MDL_NODE_LOST) {
            needed += node->connections;
            live++;
        }
    }
    if (needed + found.others + found.reserved > found.most) {
        mdl_health_warn(health, apr_psprintf(p,
                                             "PostgreSQL takes %" APR_INT64_T_FMT
                                             " connections, and %" APR_INT64_T_FMT
                                             " are needed: %" APR_INT64_T_FMT
                                             " by this service's live nodes (%d), %" APR_INT64_T_FMT
                                             " in use by others, %" APR_INT64_T_FMT
                                             " reserved for administrators.  Raise "
                                             "max_connections, or lower DBDMax or the number of "
                                             "httpd's children (MaxRequestWorkers / "
                                             "ThreadsPerChild) on each node.",
                                             found.most, needed + found.others + found.reserved,
                                             needed, live, found.others, found.reserved));
    }
    return apr_psprintf(p,
                        ", %" APR_INT64_T_FMT " of %" APR_INT64_T_FMT
                        " connections in use, live nodes (%d) may open %" APR_INT64_T_FMT,
                        found.used, found.most, live, needed);
}
