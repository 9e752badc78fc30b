#include "db/migrate.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/log.h"
#include "base/version.h"

/* The only table that no migration creates. */
static const char create_table[] = "CREATE TABLE IF NOT EXISTS schema_migration ("
                                   "version INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                                   "fingerprint TEXT NOT NULL, build TEXT NOT NULL, "
                                   "applied_at BIGINT NOT NULL)";

static const mdl_migration_t *migration_of(int version)
{
    for (int i = 0; i < mdl_migration_count; i++) {
        if (mdl_migrations[i].version == version) {
            return &mdl_migrations[i];
        }
    }
    return NULL;
}

static apr_status_t migration_read_version(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    int *version = arg;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select_one(db, &rows, p, MDL_Q(MIGRATION_COLUMNS));

    *version = 0;
    if (rv != APR_SUCCESS || mdl_rows_int(rows, 0) == 0) {
        return rv;
    }
    if (mdl_rows_int(rows, 1) == 0) {
        return MDL_MIGRATE_EOTHER;
    }
    rv = mdl_db_select(db, &rows, p, MDL_Q(MIGRATION_FINGERPRINTS));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const mdl_migration_t *known = migration_of(*version = (int)mdl_rows_int(rows, 0));

        if (known != NULL &&
            strcmp(known->fingerprint[mdl_db_dialect(db)], mdl_rows_text(rows, 1)) != 0) {
            rv = MDL_MIGRATE_EOTHER;
        }
    }
    return rv;
}

/* Admits one process at a time, without a time limit; on SQLite any writing transaction does. */
static apr_status_t migration_lock(mdl_db_t *db)
{
    static const char *const commands[] = {
        "SET LOCAL statement_timeout = 0", "SET LOCAL lock_timeout = 0",
        "SELECT pg_advisory_xact_lock(hashtext('mod_downloads'))"};
    apr_status_t rv = APR_SUCCESS;

    if (mdl_db_dialect(db) != MDL_PGSQL) {
        return APR_SUCCESS;
    }
    for (apr_size_t i = 0; rv == APR_SUCCESS && i < sizeof commands / sizeof *commands; i++) {
        rv = mdl_db_command(db, commands[i]);
    }
    return rv;
}

/* Statements are written for large tables without statistics.  With statistics of once small tables
   SQLite would scan many of them, even after they have grown. */
static apr_status_t migration_drop_statistics(mdl_db_t *db)
{
    return mdl_db_dialect(db) == MDL_SQLITE3
               ? mdl_db_command(db, "DROP TABLE IF EXISTS sqlite_stat1")
               : APR_SUCCESS;
}

static apr_status_t migration_create_table(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    int version;
    apr_status_t rv = migration_lock(db);

    (void)arg;
    if (rv != APR_SUCCESS || (rv = migration_read_version(db, p, &version)) != APR_SUCCESS ||
        (rv = migration_drop_statistics(db)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_command(db, create_table);
}

apr_status_t mdl_migrate_version(mdl_db_t *db, int *version, apr_pool_t *p)
{
    return mdl_db_read(db, migration_read_version, version, p);
}

typedef struct {
    int version;
    const char *build; /* NULL: not known */
} maker_t;

static apr_status_t migration_read_build(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    maker_t *maker = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(MIGRATION_BUILD, maker->version));

    maker->build = rv == APR_SUCCESS ? mdl_rows_text(row, 0) : NULL;
    return rv;
}

const char *mdl_migrate_maker(mdl_db_t *db, int version, apr_pool_t *p)
{
    maker_t maker = {.version = version};

    mdl_db_read(db, migration_read_build, &maker, p);
    return maker.build != NULL
               ? apr_psprintf(p, "version %d, made by mod_downloads %s", version, maker.build)
               : apr_psprintf(p, "version %d", version);
}

int mdl_migrate_latest(void)
{
    return mdl_migrations[mdl_migration_count - 1].version;
}

static apr_status_t migration_apply_next(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const mdl_migration_t *next = NULL;
    int version = 0;
    apr_status_t rv = migration_lock(db);

    *(int *)arg = 0;
    if (rv != APR_SUCCESS || (rv = migration_read_version(db, p, &version)) != APR_SUCCESS) {
        return rv;
    }
    if (version > mdl_migrate_latest()) {
        return APR_EMISMATCH;
    }
    for (int i = 0; i < mdl_migration_count && next == NULL; i++) {
        next = mdl_migrations[i].version > version ? &mdl_migrations[i] : NULL;
    }
    if (next == NULL) {
        return APR_SUCCESS;
    }
    for (const char *const *statement = next->statements[mdl_db_dialect(db)]; *statement != NULL;
         statement++) {
        if ((rv = mdl_db_command(db, *statement)) != APR_SUCCESS) {
            mdl_log(MDL_LOG_ERR, 0, "MDL0111: migration %04d (%s) failed: %s", next->version,
                    next->name, mdl_db_error(db));
            return rv;
        }
    }
    *(int *)arg = next->version;
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(MIGRATION_INSERT, .version = next->version, .name = next->name,
                             .fingerprint = next->fingerprint[mdl_db_dialect(db)],
                             .build = mdl_build_name(), .now = apr_time_now()));
}

static apr_status_t migration_apply_all(mdl_db_t *db, int *applied, apr_pool_t *p)
{
    int version;
    apr_status_t rv;

    *applied = 0;
    if ((rv = mdl_db_write(db, migration_create_table, NULL, p)) != APR_SUCCESS) {
        return rv;
    }
    while ((rv = mdl_db_write(db, migration_apply_next, &version, p)) == APR_SUCCESS &&
           version != 0) {
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0112: the schema is now at migration %04d", version);
        ++*applied;
    }
    return rv;
}

apr_status_t mdl_migrate(mdl_db_t *db, int *applied, apr_pool_t *p)
{
    apr_status_t rv;

    mdl_db_limit_waits(db, 0);
    rv = migration_apply_all(db, applied, p);
    mdl_db_limit_waits(db, 1);
    return rv;
}
