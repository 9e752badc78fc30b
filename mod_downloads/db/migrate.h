/*
 * Brings the schema up to date by sql/migrations, in order.  Each migration and its row in
 * schema_migration are one transaction, so a kill leaves no half step.
 *
 * A build knows the versions up to its newest migration.  It runs on a newer schema, too, as long
 * as it knows the version that each migration names as "runs-with".  So nodes can be upgraded one
 * after the other (docs/operate.md).  For any other build such a schema is too new: MDL_DB_ENEWER.
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

/** *version gets the newest migration applied, 0 for an empty database.  Returns MDL_DB_ENEWER for
    a schema that is too new, MDL_MIGRATE_EOTHER for a foreign one. */
apr_status_t mdl_migrate_version(mdl_db_t *db, int *version, apr_pool_t *p);

/** The schema's version and the build that made it: "version 41, made by mod_downloads 0.1.0
    (a32b4af)". */
const char *mdl_migrate_maker(mdl_db_t *db, apr_pool_t *p);

/** NULL, or, if the schema is too new, the rest of a sentence that begins with "the schema" and
    names both versions and both builds. */
const char *mdl_migrate_too_new(mdl_db_t *db, apr_pool_t *p);

/** Effect, for mdl_db_set_check: MDL_DB_ENEWER if the schema is too new, which is logged once a
    minute at most, MDL_DB_ECLOSED during maintenance (core/closed.h). */
apr_status_t mdl_migrate_check(mdl_db_t *db, apr_pool_t *p, void *unused);

/** The newest migration of this build. */
int mdl_migrate_latest(void);

/** The lowest version that other builds must know to run on this build's schema. */
int mdl_migrate_runs_with(void);

/** A migration that a schema lacks. */
typedef struct {
    int version;
    const char *name;
    int runs_with;
} mdl_migrate_pending_t;

/** The migrations that a schema of this version lacks: mdl_migrate_pending_t *, in order. */
apr_array_header_t *mdl_migrate_pending(int version, apr_pool_t *p);

/**
 * Applies missing migrations, and on SQLite drops statistics left by ANALYZE; several processes may
 * call it at once.  *applied gets the number of migrations applied.  Returns MDL_DB_ENEWER for a
 * schema that is too new, MDL_MIGRATE_EOTHER for a foreign one, and changes neither.
 *
 * On PostgreSQL a migration for which running builds are too old cuts all connections of this user
 * to the database.  Until it is committed nobody passes the check of a new session, and afterwards
 * those builds don't, so not one statement of theirs meets the new schema.  Others go on.
 */
apr_status_t mdl_migrate(mdl_db_t *db, int *applied, apr_pool_t *p);

#endif
