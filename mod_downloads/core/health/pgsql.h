/*
 * Health checks of PostgreSQL's connections.  On SQLite there is nothing to find.
 */
#ifndef MDL_CORE_HEALTH_PGSQL_H
#define MDL_CORE_HEALTH_PGSQL_H

#include "core/health/health.h"

/** Whether connections keep their sessions, which a pooler in transaction mode does not let them;
    db may have any schema.  *message is set only if not. */
int mdl_health_sessions(const mdl_health_t *health, mdl_db_t *db, const char **message);

/** How many connections are in use and how many the live nodes may open; "" if that is unknown.
    Adds a warning if PostgreSQL takes fewer. */
const char *mdl_health_connections(const mdl_health_t *health);

#endif
