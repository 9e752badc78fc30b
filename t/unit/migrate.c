/*
 * Migrations.  Like the next release, this program has one more than the module,
 * t/unit/0002_next.sql, and it can be killed after each of its statements.
 */
#include "t/unit/database.h"
#include "t/unit/number.h"

#include <signal.h>

#include "base/log.h"
#include "base/version.h"

static const char *killed_after; /* the process dies after this statement */

apr_status_t __real_mdl_db_command(mdl_db_t *db, const char *sql);
apr_status_t __wrap_mdl_db_command(mdl_db_t *db, const char *sql);

/* The linker replaces mdl_db_command with this (apxs.mk). */
apr_status_t __wrap_mdl_db_command(mdl_db_t *db, const char *sql)
{
    apr_status_t rv = __real_mdl_db_command(db, sql);

    if (killed_after != NULL && strcmp(sql, killed_after) == 0) {
        raise(SIGKILL);
    }
    return rv;
}

static void test_statistics(const database_t *database, apr_pool_t *p)
{
    const char *count = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";
    mdl_db_t *analyzed = database_ready(database, p);
    int applied;

    if (database->dialect != MDL_SQLITE3) {
        return;
    }
    mdl_db_command(analyzed, "ANALYZE");
    is_int(number_of(database, count), 1, "ANALYZE leaves statistics");
    is_int(mdl_migrate(analyzed, &applied, p), APR_SUCCESS, "the database is migrated then");
    is_int(number_of(database, count), 0, "the statistics are gone");
}

static void test_migrate(const database_t *database, apr_pool_t *p)
{
    mdl_db_t *fresh = database_open(database, p);
    int version = -1, applied = -1;

    is_int(mdl_migrate_version(fresh, &version, p), APR_SUCCESS,
           "the version of a database without a schema is read");
    is_int(version, 0, "it is version 0");
    is_int(mdl_migrate(fresh, &applied, p), APR_SUCCESS, "it is migrated");
    is_int(applied, mdl_migration_count, "every migration is applied");
    is_int(mdl_migrate(fresh, &applied, p), APR_SUCCESS, "it is migrated once more");
    is_int(applied, 0, "no migration is left to apply");
    mdl_migrate_version(fresh, &version, p);
    is_int(version, mdl_migrate_latest(), "it is at the latest version");
}

static void add_migration(mdl_db_t *db, int version, int runs_with, apr_pool_t *p)
{
    mdl_db_command(db, apr_psprintf(p,
                                    "INSERT INTO schema_migration (version, name, fingerprint, "
                                    "build, runs_with, applied_at) "
                                    "VALUES (%d, 'later', '', '9.9', %d, 1)",
                                    version, runs_with));
}

static int logged; /* lines about a schema that is too new */

static void count_lines(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                        const char *message)
{
    (void)file, (void)line, (void)rv;
    logged += level == MDL_LOG_ERR && strncmp(message, "MDL0115: ", 9) == 0;
}

static apr_status_t find_order(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_rows_t *row;

    (void)arg;
    return mdl_db_select_one(db, &row, p, MDL_Q(ORDER_EXISTS));
}

static apr_status_t name_no_column(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    (void)p, (void)arg;
    return mdl_db_command(db, "SELECT no_such_column FROM orders");
}

/* Reads once this time has passed. */
static apr_status_t after(apr_interval_time_t time, mdl_db_t *db, mdl_effect_fn *effect,
                          apr_pool_t *p)
{
    atomic_fetch_add(&monotonic_ahead, time);
    return mdl_db_read(db, effect, NULL, p);
}

#define SECOND apr_time_from_sec(1)

static void test_newer(const database_t *database, apr_pool_t *p)
{
    mdl_db_t *held = database_open(database, p), *other = database_open(database, p);
    int version = 0, applied = 0;

    stop_clocks();
    atomic_fetch_add(&monotonic_ahead, 61 * SECOND); /* since a line of the database before */
    mdl_db_set_check(held, mdl_migrate_check);
    is_int(after(0, held, find_order, p), APR_ENOENT, "a schema that the program knows is read");
    add_migration(other, 900, 2, p);
    is_int(mdl_migrate_version(other, &version, p), APR_SUCCESS,
           "a newer schema that runs with version 2 suits this program, which knows it");
    is_int(version, 900, "its version is read");
    ok(mdl_migrate_too_new(other, p) == NULL, "there is nothing to say of it");
    is_int(mdl_migrate(other, &applied, p), APR_SUCCESS, "nothing is left to apply");
    is_int(applied, 0, "and nothing is applied");
    is_int(after(2 * SECOND, held, find_order, p), APR_ENOENT, "a running program goes on");

    add_migration(other, 901, 3, p);
    is_int(mdl_migrate_version(other, &version, p), MDL_DB_ENEWER,
           "one that runs with version 3 is too new");
    is_str(mdl_migrate_too_new(other, p),
           apr_psprintf(
               p,
               "is too new for this build (version 901, made by mod_downloads 9.9, for builds "
               "that know version 3 or newer; this is %s, which knows version 2)",
               mdl_build_name()),
           "the sentence names both");
    is_int(mdl_migrate(other, &applied, p), MDL_DB_ENEWER, "it is not migrated");
    logged = 0;
    is_int(after(0, held, find_order, p), APR_ENOENT,
           "a running program may not notice within a second");
    is_int(after(0, held, name_no_column, p), MDL_DB_ENEWER,
           "unless a statement of its does not fit the schema");
    is_int(after(2 * SECOND, held, find_order, p), MDL_DB_ENEWER, "then it reads nothing more");
    is_int(mdl_db_write(held, find_order, NULL, p), MDL_DB_ENEWER, "and writes nothing");
    is_int(logged, 1, "the log says so once");
    is_int(after(61 * SECOND, held, find_order, p), MDL_DB_ENEWER, "a minute later");
    is_int(logged, 2, "it says so once more");
    add_migration(other, 902, 1, p);
    is_int(mdl_migrate_version(other, &version, p), MDL_DB_ENEWER,
           "a later migration that needs less does not change that");
    mdl_db_command(other, "DELETE FROM schema_migration WHERE version > 900");
    is_int(after(0, held, find_order, p), APR_ENOENT, "on a schema that suits it it goes on");
    is_int(after(0, held, name_no_column, p), MDL_DB_EOTHER,
           "where a statement that does not fit is a fault");
    mdl_db_command(other, "DELETE FROM schema_migration WHERE version = 900");
    atomic_store(&clocks_stopped, 0);
}

#define MIGRATORS 4

/* A second database, since the first one already has its schema. */
static database_t empty_twin(const database_t *database, const char *name, apr_pool_t *p)
{
    database_t twin = *database;

    if (database->dialect == MDL_SQLITE3) {
        twin.params = apr_pstrcat(p, database->params, "-", name, NULL);
    } else {
        pgsql_command(
            database->params,
            "SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    }
    return twin;
}

static void test_migrate_at_once(const database_t *database, apr_pool_t *p)
{
    database_t twin = empty_twin(database, "twin", p);
    pid_t children[MIGRATORS];
    int start[2], results[2], total = 0, good = 1, version = 0;
    char byte;

    if (pipe(start) != 0 || pipe(results) != 0) {
        exit(2);
    }
    for (int i = 0; i < MIGRATORS; i++) {
        if ((children[i] = child_begin()) == 0) {
            int applied = 0;
            apr_status_t rv;

            close(start[1]);
            (void)!read(start[0], &byte, 1); /* until the parent closes it */
            rv = mdl_migrate(database_open(&twin, p), &applied, p);
            byte = (char)applied;
            child_end(rv == APR_SUCCESS && write(results[1], &byte, 1) == 1);
        }
    }
    close(start[0]);
    close(start[1]);
    for (int i = 0; i < MIGRATORS; i++) {
        good &= child_good(children[i]);
    }
    close(results[1]);
    while (read(results[0], &byte, 1) == 1) {
        total += byte;
    }
    close(results[0]);
    ok(good, "four processes that migrate an empty database at once all succeed");
    is_int(total, mdl_migration_count, "each migration was applied by one of them");
    mdl_migrate_version(database_open(&twin, p), &version, p);
    is_int(version, mdl_migrate_latest(), "and the schema is there");
}

/* Migrates in a process that is killed after a statement. */
static int migrate_killed(const database_t *database, const char *statement, apr_pool_t *p)
{
    int applied, status = 0;
    pid_t child = child_begin();

    if (child == 0) {
        killed_after = statement;
        mdl_migrate(database_open(database, p), &applied, p);
        child_end(0);
    }
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGKILL;
}

static void test_killed(const database_t *database, apr_pool_t *p)
{
    static const char *const rows[] = {
        "INSERT INTO shop (id, name, domain, status, created_at, updated_at) "
        "VALUES (7, 'Old', 'old.test', 'approved', 1, 2)",
        "INSERT INTO customer (id, shop_id, storefront_customer_id, created_at, updated_at) "
        "VALUES (8, 7, 'c', 1, 2)",
        "INSERT INTO orders (id, shop_id, storefront_order_id, customer_id, page_id, "
        "access_status, fraud_decision, created_at, updated_at) "
        "VALUES (9, 7, 'o', 8, 'page', 'active', 'passed', 1, 2)"};
    static const char tables[] = "SELECT count(*) FROM gift";
    database_t old = empty_twin(database, "killed", p);
    const char *const *statements = mdl_migrations[1].statements[database->dialect];
    int version, applied, good = 1;
    mdl_rows_t *row;
    mdl_db_t *on;

    ok(migrate_killed(&old, statements[0], p), "an empty database is migrated until a kill");
    on = database_open(&old, p);
    mdl_migrate_version(on, &version, p);
    is_int(version, 1, "it has the schema of the migration before");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        good &= mdl_db_command(on, rows[i]) == APR_SUCCESS;
    }
    ok(good, "it gets data");
    for (int i = 0; statements[i] != NULL; i++) {
        ok(migrate_killed(&old, statements[i], p),
           apr_psprintf(p, "killed after %s", statements[i]));
        is_int(mdl_migrate_version(on, &version, p), APR_SUCCESS, "the schema can be read");
        is_int(version, 1, "it is the one of before");
        ok(mdl_db_command(on, tables) != APR_SUCCESS, "nothing of the next is there");
    }
    is_int(mdl_migrate(on, &applied, p), APR_SUCCESS, "it is migrated once nothing kills that");
    is_int(applied, 1, "the missing migration is applied");
    mdl_migrate_version(on, &version, p);
    is_int(version, 2, "it has the next schema");
    is_int(mdl_db_select_one(on, &row, p,
                             MDL_Q(ORDER_BY_PAGE_ID, .day = 0, .network = "", .page_id = "page")),
           APR_SUCCESS, "an order from before is found");
    is_int(mdl_rows_int(row, 0), 9, "it is unchanged");
    is_int(number_of(&old, "SELECT order_id FROM gift WHERE note = 'for o'"), 9,
           "and the migration has seen it");
}

static void test_other(const database_t *database, apr_pool_t *p)
{
    static const char *const changes[] = {
        "UPDATE schema_migration SET fingerprint = 'other' WHERE version = 1",
        ("INSERT INTO schema_migration (version, name, fingerprint, build, runs_with, applied_at) "
         "VALUES (9999, 'of_another', '', '', 9999, 1)"),
        "ALTER TABLE schema_migration DROP COLUMN fingerprint"};
    static const char *const names[] = {"another first migration", "a higher version besides",
                                        "no fingerprints"};
    database_t twin = empty_twin(database, "other", p);
    mdl_db_t *on = database_ready(&twin, p);
    int version, applied;

    mdl_db_command(on, "DELETE FROM schema_migration WHERE version > 1");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        mdl_db_command(on, changes[i]);
        is_int(mdl_migrate_version(database_open(&twin, p), &version, p), MDL_MIGRATE_EOTHER,
               apr_psprintf(p, "a schema of %s is another program's", names[i]));
        is_int(mdl_migrate(database_open(&twin, p), &applied, p), MDL_MIGRATE_EOTHER,
               "it is not migrated");
        is_int(number_of(&twin, "SELECT count(*) FROM schema_migration WHERE version = 2"), 0,
               "and stays as it is");
    }
}

static void tests(const database_t *database, apr_pool_t *p)
{
    test_migrate(database, p);
    test_newer(database, p);
    test_statistics(database, p);
    test_migrate_at_once(database, p);
    test_killed(database, p);
    test_other(database, p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    mdl_log_set_sink(count_lines);
    on_each_database(tests, p);
    return tap_end(p);
}
