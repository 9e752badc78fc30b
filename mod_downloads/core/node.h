/*
 * Nodes: each httpd that works on the database, as its background process notes it there from time
 * to time.  What `downloadsctl check` finds out about processes of other hosts, it has from here.
 * The times are of the database's clock alone, so that the hosts' may differ.
 */
#ifndef MDL_CORE_NODE_H
#define MDL_CORE_NODE_H

#include <apr_tables.h>
#include <apr_time.h>

#include "db/db.h"

#define MDL_NODE_BEAT apr_time_from_sec(10) /* between two beats */
#define MDL_NODE_LOST apr_time_from_sec(90) /* without a beat: no process seems to live */
#define MDL_NODE_KEPT apr_time_from_sec(86400)

typedef struct {
    const char *host;
    const char *pid_file; /* httpd's: what two httpds of one host have apart */
    apr_int64_t pid;      /* of the background process */
    const char *build;    /* mdl_build_name() of its module */
    apr_interval_time_t silence;
} mdl_node_t;

/** The name of this host. */
const char *mdl_node_host(apr_pool_t *p);

/** Effect: notes that this host's background process of the httpd with that pid file lives, and
    forgets the nodes that have been silent for MDL_NODE_KEPT. */
apr_status_t mdl_node_beat(mdl_db_t *db, apr_pool_t *p, const char *pid_file);

/** Effect: notes that this process ends because it was told to, so that nobody misses it. */
apr_status_t mdl_node_leave(mdl_db_t *db, apr_pool_t *p, const char *pid_file);

/** Effect that reads: all nodes (mdl_node_t), in p. */
apr_status_t mdl_node_list(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **nodes);

/** Effect that reads the time by the database's clock, by which all nodes judge what is over. */
apr_status_t mdl_node_time(mdl_db_t *db, apr_pool_t *p, apr_time_t *now);

/** Effect: writes something and takes it back in the same transaction, which leaves nothing behind
    and is refused where nothing can be written. */
mdl_effect_fn mdl_node_try_write;

#endif
