/*
 * A connection for a thread that outlives outages: it is made when it is first used, and made again
 * after it was lost, at most once a second.  An outage is logged once.
 */
#ifndef MDL_DB_RECONNECT_H
#define MDL_DB_RECONNECT_H

#include "db/db.h"

typedef struct mdl_reconnect_t mdl_reconnect_t;

typedef struct {
    const char *driver; /* DBDriver */
    const char *params; /* DBDParams */
    int migrate;        /* whether the first connection brings the schema up to date */
    /* Lines of the log, each with its tag, without a full stop. */
    const char *lost;  /* the database can't be reached; the reason is appended */
    const char *found; /* it was reached again; NULL: none */
    /** Asked of each new connection; an error counts as one of the connection, for the reason that
       it puts into *why, allocated from p.  May be NULL. */
    apr_status_t (*accept)(mdl_db_t *db, void *baton, const char **why, apr_pool_t *p);
    void *baton;
} mdl_reconnect_config_t;

/** Does not connect yet.  The texts of config must live as long as p, a pool of the thread. */
mdl_reconnect_t *mdl_reconnect_create(const mdl_reconnect_config_t *config, apr_pool_t *p);

/** Connects unless that is done already.  Returns how many connections were made so far, 0 while
    there is none. */
int mdl_reconnect_connect(mdl_reconnect_t *reconnect);

/** Runs an effect by mdl_db_write or mdl_db_read, over a connection that is made where there is
    none.  MDL_DB_EGONE if it can't be, or is lost. */
apr_status_t mdl_reconnect_write(mdl_reconnect_t *reconnect, mdl_effect_fn *effect, void *arg,
                                 apr_pool_t *p);
apr_status_t mdl_reconnect_read(mdl_reconnect_t *reconnect, mdl_effect_fn *effect, void *arg,
                                apr_pool_t *p);

/** Closes the connection, which the next use makes again. */
void mdl_reconnect_close(mdl_reconnect_t *reconnect);

#endif
