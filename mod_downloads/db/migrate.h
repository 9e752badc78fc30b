/*
 * Brings the schema up to date by sql/migrations: in order, each in a transaction of its own
 * together with its row in schema_migration, so that a kill leaves whole steps.
 */
#ifndef MDL_DB_MIGRATE_H
#define MDL_DB_MIGRATE_H

#include "db/db.h"

/** Another program's schema: a migration was applied that has the number of one of ours and another
    fingerprint, or none.  MDL_SCHEMA_OTHER says so to people. */
#define MDL_MIGRATE_EOTHER (APR_OS_START_USERERR + 110)
#define MDL_SCHEMA_OTHER                                                                           \
    "was made by other migrations than this build's, and nothing converts it: use the build that " \
    "made it, or begin with an empty database and an empty storage folder"

/** *version gets the newest migration applied, 0 for an empty database.  Returns MDL_MIGRATE_EOTHER
    for another program's schema. */
apr_status_t mdl_migrate_version(mdl_db_t *db, int *version, apr_pool_t *p);

/** A schema's version and, if it says so, the build that has made it: "version 41, made by
    mod_downloads 0.1.0 (a32b4af)". */
const char *mdl_migrate_maker(mdl_db_t *db, int version, apr_pool_t *p);

/** The newest migration that this program knows. */
int mdl_migrate_latest(void);

/**
 * Applies what is missing, and on SQLite drops the statistics that an ANALYZE has left; safe to
 * call from several processes at once.  *applied gets the number of migrations applied.  Returns
 * APR_EMISMATCH for a schema newer than this program, MDL_MIGRATE_EOTHER for another program's,
 * both of which it leaves as they are.
 */
apr_status_t mdl_migrate(mdl_db_t *db, int *applied, apr_pool_t *p);

#endif
