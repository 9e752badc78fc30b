/*
 * The connection through which this process writes to SQLite.  Its cache stays valid until another
 * process writes, so it is large, and the other connections' are small.  It is opened for the first
 * transaction that writes, and closed with the last other connection of the process, so it never
 * crosses a fork.
 */
#ifndef MDL_DB_WRITER_H
#define MDL_DB_WRITER_H

#include "db/db.h"

/** Call these after a connection to SQLite was opened, and before it is closed. */
void mdl_writer_join(void);
void mdl_writer_leave(void);

/** Opens a connection to db's file that lives as long as p; NULL if that fails. */
typedef mdl_db_t *mdl_writer_open_fn(const mdl_db_t *db, apr_pool_t *p);

/** The connection for a transaction of db, or db itself if no other can be opened.  Call this and
    mdl_writer_lose from one thread at a time. */
mdl_db_t *mdl_writer_take(mdl_db_t *db, mdl_writer_open_fn *open);

/** Closes the connection after its file was lost. */
void mdl_writer_lose(void);

#endif
