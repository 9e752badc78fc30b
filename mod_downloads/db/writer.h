/*
 * The connection by which this process writes to SQLite.  What it has read stays in its cache until
 * another process writes, so its cache is large, and those of the others are small.  It is opened
 * for the first transaction that writes, and closed with the last of the process's other
 * connections, so that it never crosses a fork.
 */
#ifndef MDL_DB_WRITER_H
#define MDL_DB_WRITER_H

#include "db/db.h"

/** To be called when a connection to SQLite was opened, and before it is closed. */
void mdl_writer_join(void);
void mdl_writer_leave(void);

/** Opens a connection to db's file that lives as long as p; NULL if that fails. */
typedef mdl_db_t *mdl_writer_open_fn(const mdl_db_t *db, apr_pool_t *p);

/** The connection for a transaction of db's, or db itself where there can't be another.  For one
    thread at a time, as the next. */
mdl_db_t *mdl_writer_take(mdl_db_t *db, mdl_writer_open_fn *open);

/** Closes it, after its file was lost. */
void mdl_writer_lose(void);

#endif
