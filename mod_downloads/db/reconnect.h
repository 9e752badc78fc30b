/*
 * A thread's connection that survives outages: opened on first use and, after it was lost, again,
 * at most once a second.  An outage is logged once.
 */
#ifndef MDL_DB_RECONNECT_H
#define MDL_DB_RECONNECT_H

#include "db/db.h"

typedef struct mdl_reconnect_t mdl_reconnect_t;

typedef struct {
    const char *driver; /* DBDriver */
    const char *params; /* DBDParams */
    int migrate;        /* whether the first connection brings the schema up to date */
    /* Log messages, each with its tag, without a full stop. */
    const char *lost;  /* the database can't be reached; the reason is appended */
    const char *found; /* it is reachable again; NULL: no message */
    /** Checks each new connection; an error counts as a failure to connect, and *why, in p, is its
        reason.  May be NULL. */
    apr_status_t (*accept)(mdl_db_t *db, void *baton, const char **why, apr_pool_t *p);
    void *baton;
} mdl_reconnect_config_t;

/** Does not connect yet.  The texts of config must live as long as p, a pool of the thread. */
mdl_reconnect_t *mdl_reconnect_create(const mdl_reconnect_config_t *config, apr_pool_t *p);

/** Connects if necessary.  Returns how many connections were made so far; 0: none is open. */
int mdl_reconnect_connect(mdl_reconnect_t *reconnect);

/** Runs an effect by mdl_db_write, mdl_db_settle or mdl_db_read, and connects if necessary.
   MDL_DB_EGONE if that fails or the connection is lost. */
apr_status_t mdl_reconnect_write(mdl_reconnect_t *reconnect, mdl_effect_fn *effect, void *arg,
                                 apr_pool_t *p);
apr_status_t mdl_reconnect_settle(mdl_reconnect_t *reconnect, mdl_effect_fn *effect, void *arg,
                                  apr_pool_t *p);
apr_status_t mdl_reconnect_read(mdl_reconnect_t *reconnect, mdl_effect_fn *effect, void *arg,
                                apr_pool_t *p);

/** mdl_db_is_closed of the connection; false while there is none. */
int mdl_reconnect_is_closed(const mdl_reconnect_t *reconnect);

/** Closes the connection; the next use opens another. */
void mdl_reconnect_close(mdl_reconnect_t *reconnect);

#endif
