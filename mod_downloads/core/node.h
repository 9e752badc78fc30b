/*
 * Nodes: each httpd that works on the database, recorded by the heartbeat of its background
 * process.  `downloadsctl check` learns of other hosts' processes from it, and each process how
 * many others share what the service may do.  All times are by the database's clock, so the hosts'
 * clocks may differ.
 */
#ifndef MDL_CORE_NODE_H
#define MDL_CORE_NODE_H

#include <apr_tables.h>
#include <apr_time.h>

#include "db/db.h"

#define MDL_NODE_BEAT apr_time_from_sec(10) /* between two heartbeats */
#define MDL_NODE_LOST apr_time_from_sec(90) /* without a heartbeat: the process seems dead */
#define MDL_NODE_KEPT apr_time_from_sec(86400)

typedef struct {
    const char *host;
    const char *pid_file;    /* httpd's: distinguishes httpds of the same host */
    apr_int64_t pid;         /* of the background process */
    const char *build;       /* mdl_build_name() of its module */
    apr_int64_t connections; /* to the database that its httpd may have open, at most */
    apr_interval_time_t silence;
} mdl_node_t;

/** The name of this host. */
const char *mdl_node_host(apr_pool_t *p);

/** Effect: sends the heartbeat of this background process, counts the nodes that are not lost, and
    deletes nodes that have been silent for MDL_NODE_KEPT. */
typedef struct {
    const char *pid_file; /* httpd's */
    int connections;      /* as in mdl_node_t */
    int live;             /* result: nodes, this one included */
} mdl_node_beat_t;

apr_status_t mdl_node_beat(mdl_db_t *db, apr_pool_t *p, mdl_node_beat_t *beat);

/** A node's share of what live nodes may do together: at least 1 of anything, and 0 of 0. */
int mdl_node_share(int whole, int live);

/** Effect: removes this node when its process ends on request, so that nobody misses it. */
apr_status_t mdl_node_leave(mdl_db_t *db, apr_pool_t *p, const char *pid_file);

/** Effect: reads all nodes (mdl_node_t), in p. */
apr_status_t mdl_node_list(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **nodes);

/** Effect: reads the time by the database's clock, which all nodes go by. */
apr_status_t mdl_node_time(mdl_db_t *db, apr_pool_t *p, apr_time_t *now);

/** Effect: tries to write, by a row that it removes in the same transaction. */
mdl_effect_fn mdl_node_try_write;

#endif
