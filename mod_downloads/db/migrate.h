/*
 * Brings the schema up to date by sql/migrations: in order, each in a transaction of its own
 * together with its row in schema_migration, so that a kill leaves whole steps.
 */
#ifndef MDL_DB_MIGRATE_H
#define MDL_DB_MIGRATE_H

#include "db/db.h"

/** *version gets the newest migration applied, 0 for an empty database. */
apr_status_t mdl_migrate_version(mdl_db_t *db, int *version, apr_pool_t *p);

/** A schema's version and, if it says so, the build that has made it: "version 41, made by
    mod_downloads 0.1.0 (a32b4af)". */
const char *mdl_migrate_maker(mdl_db_t *db, int version, apr_pool_t *p);

/** The newest migration that this program knows. */
int mdl_migrate_latest(void);

/**
 * Applies what is missing, and on SQLite drops the statistics that an ANALYZE has left; safe to
 * call from several processes at once.  *applied gets the number of migrations applied.  Returns
 * APR_EMISMATCH for a schema newer than this program.
 */
apr_status_t mdl_migrate(mdl_db_t *db, int *applied, apr_pool_t *p);

#endif
