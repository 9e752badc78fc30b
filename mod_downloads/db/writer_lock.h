/*
 * The lock that lets one connection at a time write to SQLite: flock on a file beside the database.
 * It excludes threads and processes alike, and ends when its holder is killed.  A blocking flock
 * has no timeout, so it must be polled, and polling is unfair.  So httpd's processes first queue in
 * shared memory, and only the head of the queue polls for the file, which is free unless another
 * program writes.
 */
#ifndef MDL_DB_WRITER_LOCK_H
#define MDL_DB_WRITER_LOCK_H

#include "db/db.h"

/** Waits for this connection's turn to write.  Returns MDL_DB_EBUSY at db->patience, MDL_DB_EGONE
   or MDL_DB_EOTHER if the file can't be opened or locked; each has been logged. */
apr_status_t mdl_writer_lock(mdl_db_t *db);

void mdl_writer_unlock(const mdl_db_t *db);

#endif
