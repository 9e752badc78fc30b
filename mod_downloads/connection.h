/*
 * A request's connection to the database, from mod_dbd's pool.
 */
#ifndef MDL_CONNECTION_H
#define MDL_CONNECTION_H

#include <httpd.h>

#include "db/db.h"

typedef struct mdl_connection_t mdl_connection_t;

/** The id of a request: mod_unique_id's, so that logs can be joined, or one made here. */
const char *mdl_request_id(request_rec *r);

/** Looks up mod_dbd's functions; to be called in post_config with DBDMax. */
void mdl_connection_init(int max);

/** Takes a connection, on which transactions are MDL_DB_ENEWER while the schema is too new for this
    build (db/migrate.h).  Returns NULL when the database is out of reach, or when this process had
   no free connection for 5 s.  Take it late.  What is written on it notes the request's id. */
mdl_connection_t *mdl_connection_open(request_rec *r);

/** Runs an effect by mdl_db_read, mdl_db_snapshot or mdl_db_write on *connection, which is opened
    first if it is NULL.  MDL_DB_EGONE when there is none. */
apr_status_t mdl_connection_run(mdl_connection_t **connection, request_rec *r, mdl_db_run_fn *how,
                                mdl_effect_fn *effect, void *arg);

mdl_db_t *mdl_connection_db(mdl_connection_t *connection);

/** The rows that were read on the connection for this request. */
unsigned mdl_connection_rows(const mdl_connection_t *connection);

/** Gives the connection back; call it before a body is sent.  NULL is allowed.  The request's note
    "downloads-db" says what the connection has cost, for a log: "statements=3;trips=5;rows=12". */
void mdl_connection_close(mdl_connection_t *connection);

#endif
