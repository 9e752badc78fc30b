#include "db/migrate.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"

#define MINUTE apr_time_from_sec(60)

/* The only table that no migration creates. */
static const char create_table[] = "CREATE TABLE IF NOT EXISTS schema_migration ("
                                   "version INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                                   "fingerprint TEXT NOT NULL, build TEXT NOT NULL, "
                                   "runs_with INTEGER NOT NULL, applied_at BIGINT NOT NULL)";

typedef struct {
    int version;       /* of the newest migration applied; 0: none */
    int runs_with;     /* the lowest version that a build must know */
    const char *build; /* that applied the newest migration; NULL: none */
} schema_t;

static const mdl_migration_t *migration_of(int version)
{
    for (int i = 0; i < mdl_migration_count; i++) {
        if (mdl_migrations[i].version == version) {
            return &mdl_migrations[i];
        }
    }
    return NULL;
}

int mdl_migrate_latest(void)
{
    return mdl_migrations[mdl_migration_count - 1].version;
}

int mdl_migrate_runs_with(void)
{
    int highest = 0;

    for (int i = 0; i < mdl_migration_count; i++) {
        highest = mdl_migrations[i].runs_with > highest ? mdl_migrations[i].runs_with : highest;
    }
    return highest;
}

apr_array_header_t *mdl_migrate_pending(int version, apr_pool_t *p)
{
    apr_array_header_t *found = apr_array_make(p, 2, sizeof(mdl_migrate_pending_t *));

    for (int i = 0; i < mdl_migration_count; i++) {
        const mdl_migration_t *migration = &mdl_migrations[i];
        mdl_migrate_pending_t *pending = apr_pcalloc(p, sizeof *pending);

        *pending = (mdl_migrate_pending_t){migration->version, migration->name,
                                           migration->runs_with};
        if (migration->version > version) {
            APR_ARRAY_PUSH(found, mdl_migrate_pending_t *) = pending;
        }
    }
    return found;
}

static apr_status_t schema_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    schema_t *schema = arg;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select_one(db, &rows, p, MDL_Q(MIGRATION_COLUMNS));

    *schema = (schema_t){0};
    if (rv != APR_SUCCESS || mdl_rows_int(rows, 0) == 0) {
        return rv;
    }
    if (mdl_rows_int(rows, 1) < 2) {
        return MDL_MIGRATE_EOTHER;
    }
    rv = mdl_db_select(db, &rows, p, MDL_Q(MIGRATIONS));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        int runs_with = (int)MDL_INT(rows, migrations, runs_with);
        const mdl_migration_t *known;

        MDL_READ(rows, migrations, schema, version, build);
        schema->runs_with = runs_with > schema->runs_with ? runs_with : schema->runs_with;
        known = migration_of(schema->version);
        if (known != NULL && strcmp(known->fingerprint[mdl_db_dialect(db)],
                                    MDL_TEXT(rows, migrations, fingerprint)) != 0) {
            rv = MDL_MIGRATE_EOTHER;
        }
    }
    return rv == APR_SUCCESS && schema->runs_with > mdl_migrate_latest() ? MDL_DB_ENEWER : rv;
}

apr_status_t mdl_migrate_version(mdl_db_t *db, int *version, apr_pool_t *p)
{
    schema_t schema = {0};
    apr_status_t rv = mdl_db_read(db, schema_read, &schema, p);

    *version = schema.version;
    return rv;
}

static const char *schema_maker(const schema_t *schema, apr_pool_t *p)
{
    return apr_psprintf(p, "version %d, made by mod_downloads %s", schema->version, schema->build);
}

const char *mdl_migrate_maker(mdl_db_t *db, apr_pool_t *p)
{
    schema_t schema = {0};

    mdl_db_read(db, schema_read, &schema, p);
    return schema_maker(&schema, p);
}

static const char *schema_too_new(const schema_t *schema, apr_pool_t *p)
{
    return apr_psprintf(p,
                        "is too new for this build (%s, for builds that know version %d or newer; "
                        "this is %s, which knows version %d)",
                        schema_maker(schema, p), schema->runs_with, mdl_build_name(),
                        mdl_migrate_latest());
}

const char *mdl_migrate_too_new(mdl_db_t *db, apr_pool_t *p)
{
    schema_t schema;

    return mdl_db_read(db, schema_read, &schema, p) == MDL_DB_ENEWER ? schema_too_new(&schema, p)
                                                                     : NULL;
}

/* Whether a process may log what it last logged a minute ago. */
static int is_time_to_log(void)
{
    static _Atomic apr_time_t next;
    apr_time_t now = mdl_clock_monotonic();
    apr_time_t due = atomic_load(&next);

    return now >= due && atomic_compare_exchange_strong(&next, &due, now + MINUTE);
}

apr_status_t mdl_migrate_check(mdl_db_t *db, apr_pool_t *p, void *unused)
{
    mdl_rows_t *row;
    schema_t schema;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(MIGRATION_RUNS_WITH));

    (void)unused;
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (MDL_INT(row, migration_runs_with, runs_with) <= mdl_migrate_latest()) {
        return MDL_INT(row, migration_runs_with, closed) ? MDL_DB_ECLOSED : APR_SUCCESS;
    }
    if (is_time_to_log() && schema_read(db, p, &schema) == MDL_DB_ENEWER) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0115: the database's schema %s; requests get 503 and jobs wait: upgrade this "
                "node",
                schema_too_new(&schema, p));
    }
    return MDL_DB_ENEWER;
}

static apr_status_t commands_run(mdl_db_t *db, const char *const *commands)
{
    apr_status_t rv = APR_SUCCESS;

    for (; rv == APR_SUCCESS && *commands != NULL; commands++) {
        rv = mdl_db_command(db, *commands);
    }
    return rv;
}

/* Admits one process at a time, without a time limit; on SQLite any writing transaction does. */
static apr_status_t migration_lock(mdl_db_t *db)
{
    static const char *const commands[] = {
        "SET LOCAL statement_timeout = 0", "SET LOCAL lock_timeout = 0",
        "SELECT pg_advisory_xact_lock(hashtext('mod_downloads'))", NULL};

    return mdl_db_dialect(db) == MDL_PGSQL ? commands_run(db, commands) : APR_SUCCESS;
}

/* The lock comes first: new sessions wait for it, and those that it waits for want nothing of this
   transaction. */
static apr_status_t migration_shut_out(mdl_db_t *db)
{
    static const char *const commands[] = {
        "LOCK TABLE schema_migration IN ACCESS EXCLUSIVE MODE",
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND usename = current_user "
        "AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
        NULL};

    return mdl_db_dialect(db) == MDL_PGSQL ? commands_run(db, commands) : APR_SUCCESS;
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
    schema_t schema;
    apr_status_t rv = migration_lock(db);

    (void)arg;
    if (rv != APR_SUCCESS || (rv = schema_read(db, p, &schema)) != APR_SUCCESS ||
        (rv = migration_drop_statistics(db)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_command(db, create_table);
}

static apr_status_t migration_apply(mdl_db_t *db, const mdl_migration_t *migration, apr_pool_t *p)
{
    apr_status_t rv = commands_run(db, migration->statements[mdl_db_dialect(db)]);

    if (rv != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0111: migration %04d (%s) failed: %s", migration->version,
                migration->name, mdl_db_error(db));
        return rv;
    }
    return mdl_db_exec(
        db, NULL, p,
        MDL_Q(MIGRATION_INSERT, .version = migration->version, .name = migration->name,
              .fingerprint = migration->fingerprint[mdl_db_dialect(db)], .build = mdl_build_name(),
              .runs_with = migration->runs_with, .now = apr_time_now()));
}

static apr_status_t migration_apply_next(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const mdl_migration_t *next = NULL;
    schema_t schema;
    apr_status_t rv = migration_lock(db);

    *(int *)arg = 0;
    if (rv != APR_SUCCESS || (rv = schema_read(db, p, &schema)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < mdl_migration_count && next == NULL; i++) {
        next = mdl_migrations[i].version > schema.version ? &mdl_migrations[i] : NULL;
    }
    if (next == NULL) {
        return APR_SUCCESS;
    }
    *(int *)arg = next->version;
    if (schema.version > 0 && next->runs_with > schema.runs_with &&
        (rv = migration_shut_out(db)) != APR_SUCCESS) {
        return rv;
    }
    return migration_apply(db, next, p);
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
