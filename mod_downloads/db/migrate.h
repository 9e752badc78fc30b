/*
 * Brings the schema up to date by sql/migrations, in order.  Each migration and its row in
 * schema_migration are one transaction, so a kill leaves no half step.
 */
#ifndef MDL_DB_MIGRATE_H
#define MDL_DB_MIGRATE_H

#include "db/db.h"

/** A foreign schema: an applied migration has the number of ours, but another fingerprint or none.
    MDL_SCHEMA_OTHER is the message for people. */
#define MDL_MIGRATE_EOTHER (APR_OS_START_USERERR + 110)
#define MDL_SCHEMA_OTHER                                                                           \
    "was made by other migrations than this build's, and nothing converts it: use the build that " \
    "made it, or begin with an empty database and an empty storage folder"

/** *version gets the newest migration applied, 0 for an empty database.  Returns MDL_MIGRATE_EOTHER
    for a foreign schema. */
apr_status_t mdl_migrate_version(mdl_db_t *db, int *version, apr_pool_t *p);

/** A schema's version and, if recorded, the build that made it: "version 41, made by mod_downloads
    0.1.0 (a32b4af)". */
const char *mdl_migrate_maker(mdl_db_t *db, int version, apr_pool_t *p);

/** The newest migration of this build. */
int mdl_migrate_latest(void);

/**
 * Applies missing migrations, and on SQLite drops statistics left by ANALYZE; several processes may
 * call it at once.  *applied gets the number of migrations applied.  Returns APR_EMISMATCH for a
 * schema newer than this build, MDL_MIGRATE_EOTHER for a foreign one, and changes neither.
 */
apr_status_t mdl_migrate(mdl_db_t *db, int *applied, apr_pool_t *p);

#endif
