/*
 * A connection when the database becomes unavailable, or loses its prepared statements.
 */
#include "t/unit/counter.h"
#include "t/unit/program.h"

#include <pthread.h>

#include <sqlite3.h>

static const database_t *database;
static mdl_db_t *db;

/* A fault that happens during an effect's first run. */

typedef struct {
    void (*event)(mdl_db_t *on);
    int last; /* only the commit comes after it */
    int runs;
} interrupted_t;

static apr_status_t bump_interrupted(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    interrupted_t *interrupted = arg;
    apr_status_t rv = bump(on, p);

    if (rv == APR_SUCCESS && interrupted->runs++ == 0) {
        interrupted->event(on);
    }
    return rv == APR_SUCCESS && !interrupted->last ? bump(on, p) : rv;
}

static apr_status_t read_interrupted(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    interrupted_t *interrupted = arg;
    apr_int64_t n;
    apr_status_t rv = read_count(on, p, &n);

    if (rv == APR_SUCCESS && interrupted->runs++ == 0) {
        interrupted->event(on);
    }
    return rv == APR_SUCCESS ? read_count(on, p, &n) : rv;
}

static void sqlite_command(const char *sql)
{
    sqlite3 *other = NULL;

    if (sqlite3_open(database->params, &other) != SQLITE_OK ||
        sqlite3_exec(other, sql, NULL, NULL, NULL) != SQLITE_OK) {
        printf("# %s: %s\n", sql, sqlite3_errmsg(other));
    }
    sqlite3_close(other);
}

static void other_command(const char *sql)
{
    if (database->dialect == MDL_SQLITE3) {
        sqlite_command(sql);
    } else {
        pgsql_command(database->params, sql);
    }
}

static void change_schema_elsewhere(mdl_db_t *on)
{
    static int n;

    (void)on;
    other_command(apr_psprintf(database->pool, "CREATE TABLE elsewhere_%d (x INTEGER)", n++));
}

static void change_schema(mdl_db_t *on)
{
    mdl_db_command(on, "CREATE TABLE made_meanwhile (x INTEGER)");
}

static void test_schema_changed(apr_pool_t *p)
{
    interrupted_t reading = {.event = change_schema_elsewhere};
    interrupted_t writing = {.event = change_schema};
    apr_int64_t before = count(db, p);

    mdl_db_write(db, bump_once, NULL, p);
    change_schema_elsewhere(db);
    is_int(count(db, p), before + 1,
           "a connection can read after another one has changed the schema");
    change_schema_elsewhere(db);
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS, "it can write, too");
    is_int(mdl_db_read(db, read_interrupted, &reading, p), APR_SUCCESS,
           "an effect can read although the schema changes between two statements");
    is_int(mdl_db_write(db, bump_interrupted, &writing, p), APR_SUCCESS,
           "an effect can change the schema itself");
    is_int(count(db, p), before + 4, "each write counts once");

    other_command("ALTER TABLE epoch RENAME TO epoch_away");
    is_int(mdl_db_write(db, bump_once, NULL, p), MDL_DB_EOTHER, "a missing table is MDL_DB_EOTHER");
    other_command("ALTER TABLE epoch_away RENAME TO epoch");
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "a write succeeds when the table is back");
}

/* --- SQLite alone --- */

static int move_copy_over(const char *path, apr_pool_t *p)
{
    const char *copy = apr_pstrcat(p, path, "-copy", NULL);
    sqlite3 *other = NULL;
    int good = sqlite3_open(path, &other) == SQLITE_OK &&
               sqlite3_exec(other, apr_pstrcat(p, "VACUUM INTO '", copy, "'", NULL), NULL, NULL,
                            NULL) == SQLITE_OK;

    sqlite3_close(other);
    unlink(apr_pstrcat(p, path, "-wal", NULL));
    unlink(apr_pstrcat(p, path, "-shm", NULL));
    return good && rename(copy, path) == 0;
}

static void test_sqlite_replaced(apr_pool_t *p)
{
    database_t own = *database;
    mdl_db_t *old, *new;
    apr_int64_t before;

    own.params = apr_pstrcat(p, database->params, "-replaced", NULL);
    old = database_ready(&own, p);
    is_int(mdl_db_write(old, bump_once, NULL, p), APR_SUCCESS, "a database file is written");
    before = count(old, p);
    ok(move_copy_over(own.params, p), "a copy replaces the file");
    is_int(mdl_db_write(old, bump_once, NULL, p), MDL_DB_EGONE,
           "a connection to the old file does not write");
    new = database_open(&own, p);
    is_int(mdl_db_write(new, bump_once, NULL, p), APR_SUCCESS, "a new connection writes");
    is_int(mdl_db_write(old, bump_once, NULL, p), MDL_DB_EGONE,
           "the old connection still does not write");
    is_int(count(new, p), before + 1, "the copy contains what the new connection wrote");
}

/* --- PostgreSQL alone --- */

static void terminate(mdl_db_t *on)
{
    (void)on;
    pgsql_command(database->params,
                  "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
                  "WHERE datname = current_database() AND pid <> pg_backend_pid()");
}

static void deallocate(mdl_db_t *on)
{
    mdl_db_command(on, "DEALLOCATE ALL");
}

static void test_pgsql_lost(apr_pool_t *p)
{
    interrupted_t middle = {.event = terminate};
    interrupted_t last = {.event = terminate, .last = 1};
    interrupted_t reading = {.event = terminate};
    apr_int64_t before = count(db, p);

    terminate(db);
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "a connection lost between two transactions is opened again");
    terminate(db);
    is_int(count(db, p), before + 1, "a lost connection is opened again for reading");
    is_int(mdl_db_write(db, bump_interrupted, &middle, p), APR_SUCCESS,
           "an effect whose connection is lost in its middle succeeds");
    is_int(middle.runs, 2, "the effect is run twice");
    is_int(count(db, p), before + 3, "it is committed once");
    is_int(mdl_db_write(db, bump_interrupted, &last, p), APR_SUCCESS,
           "an effect whose connection is lost before the commit succeeds");
    is_int(last.runs * 10 + (count(db, p) - before), 24, "it is run twice and committed once");
    is_int(mdl_db_read(db, read_interrupted, &reading, p), APR_SUCCESS,
           "a read whose connection is lost in its middle succeeds");
}

static void test_pgsql_deallocated(apr_pool_t *p)
{
    interrupted_t middle = {.event = deallocate};
    apr_int64_t before = count(db, p);

    deallocate(db);
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "lost prepared statements are prepared again");
    deallocate(db);
    is_int(count(db, p), before + 1, "they are prepared again for reading");
    is_int(mdl_db_write(db, bump_interrupted, &middle, p), APR_SUCCESS,
           "an effect that loses its prepared statements succeeds");
    is_int(middle.runs * 10 + (count(db, p) - before), 23, "it is run twice and committed once");
}

static int has_settings(mdl_db_t *on)
{
    return mdl_db_command(on, "DO $$ BEGIN IF current_setting('lock_timeout') <> '5s' THEN "
                              "RAISE EXCEPTION 'no limit'; END IF; END $$") == APR_SUCCESS;
}

/* The settings that a connection makes itself, besides those in the parameters. */
static void test_pgsql_settings(apr_pool_t *p)
{
    database_t bare = *database;
    mdl_db_t *own;

    bare.params = apr_pstrcat(p, database->params, " options=''", NULL);
    own = database_open(&bare, p);
    ok(has_settings(own), "a session has its time limits");
    terminate(own);
    mdl_db_write(own, bump_once, NULL, p);
    ok(has_settings(own), "a new session of a lost connection has them");
    mdl_db_command(own, "DISCARD ALL");
    mdl_db_write(own, bump_once, NULL, p);
    ok(has_settings(own), "a session that a pooler has reset has them");
}

typedef struct {
    const char *state;
    int times; /* how many runs fail at first */
    apr_status_t result;
    int runs;
    const char *name;
} raised_t;

static apr_status_t raise_state(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    raised_t *raised = arg;
    apr_status_t rv = bump(on, p);

    if (rv != APR_SUCCESS || raised->runs++ >= raised->times) {
        return rv;
    }
    return mdl_db_command(
        on, apr_psprintf(p, "DO $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '%s'; END $$",
                         raised->state));
}

static void test_pgsql_classes(apr_pool_t *p)
{
    raised_t cases[] = {
        {"40001", 1, APR_SUCCESS, 0, "after a serialization failure an effect is run again"},
        {"40P01", 4, APR_SUCCESS, 0, "after up to four deadlocks in a row an effect is run again"},
        {"40001", 5, MDL_DB_EOTHER, 0, "after five serialization failures the transaction fails"},
        {"53100", 9, MDL_DB_EFULL, 0, "a full disk is MDL_DB_EFULL"},
        {"55P03", 9, MDL_DB_ELOCKED, 0, "a lock that could not be acquired is MDL_DB_ELOCKED"},
        {"57014", 9, MDL_DB_ELOCKED, 0, "a statement that took too long is MDL_DB_ELOCKED"},
        {"23505", 9, MDL_DB_EUNIQUE, 0, "a unique constraint is MDL_DB_EUNIQUE"},
        {"22012", 9, MDL_DB_ENULL, 0, "a division by zero is MDL_DB_ENULL"},
        {"22003", 9, MDL_DB_EOTHER, 0, "another error is MDL_DB_EOTHER"},
        {"57P03", 9, MDL_DB_EGONE, 0, "a server that starts up is MDL_DB_EGONE"},
        {"25006", 9, MDL_DB_EGONE, 0, "a read-only server is MDL_DB_EGONE"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        apr_int64_t before = count(db, p);

        is_int(mdl_db_write(db, raise_state, &cases[i], p), cases[i].result, cases[i].name);
        is_int(count(db, p) - before, cases[i].result == APR_SUCCESS,
               cases[i].result == APR_SUCCESS ? "and is committed once" : "and nothing is written");
    }
}

/* An effect that mistakes an error for the end of the rows. */
static apr_status_t count_rows(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(on, &rows, p, MDL_Q(EPOCH_READ));

    *(apr_int64_t *)arg = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        ++*(apr_int64_t *)arg;
    }
    return rv;
}

static void test_pgsql_read_too_long(apr_pool_t *p)
{
    apr_int64_t before = count(db, p), n;

    mdl_db_command(db, "CREATE TEMP VIEW epoch AS SELECT 1 AS id, 0::bigint AS n FROM pg_sleep(9)");
    mdl_db_command(db, "SET statement_timeout = 50");
    is_int(mdl_db_read(db, read_count, &n, p), MDL_DB_ELOCKED,
           "a read that takes too long is MDL_DB_ELOCKED");
    is_int(mdl_db_read(db, count_rows, &n, p), MDL_DB_ELOCKED,
           "a read that takes too long is MDL_DB_ELOCKED even if its effect sees no rows");
    is_int(mdl_db_snapshot(db, count_rows, &n, p), MDL_DB_ELOCKED,
           "a snapshot that takes too long is MDL_DB_ELOCKED");
    mdl_db_command(db, "SET statement_timeout = 6000");
    mdl_db_command(db, "DROP VIEW pg_temp.epoch");
    is_int(count(db, p), before, "the connection can be used afterwards");
}

/* Two transactions that lock the same two rows in opposite order. */

typedef struct {
    pthread_barrier_t *both_began;
    int counter_first;
    int runs;
    apr_status_t result;
} crossing_t;

static apr_status_t lock_row(mdl_db_t *on, int counter, apr_pool_t *p)
{
    apr_int64_t changed;

    return counter ? mdl_db_exec(on, &changed, p, MDL_Q(EPOCH_BUMP))
                   : mdl_db_command(on, "UPDATE schema_migration SET name = name "
                                        "WHERE version = 1");
}

static apr_status_t lock_both_rows(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    crossing_t *crossing = arg;
    apr_status_t rv = lock_row(on, crossing->counter_first, p);

    if (crossing->runs++ == 0) {
        pthread_barrier_wait(crossing->both_began);
    }
    return rv == APR_SUCCESS ? lock_row(on, !crossing->counter_first, p) : rv;
}

static void *cross(void *data)
{
    crossing_t *crossing = data;
    apr_pool_t *p;
    mdl_db_t *own;

    apr_pool_create_unmanaged_ex(&p, NULL, NULL);
    own = database_open(database, p);
    mdl_db_command(own, "SET deadlock_timeout = 10");
    database_is_patient(own);
    crossing->result = mdl_db_write(own, lock_both_rows, crossing, p);
    apr_pool_destroy(p);
    return NULL;
}

static void test_pgsql_deadlock(apr_pool_t *p)
{
    pthread_barrier_t both_began;
    crossing_t first = {.both_began = &both_began, .counter_first = 1};
    crossing_t second = {.both_began = &both_began};
    apr_int64_t before = count(db, p);
    pthread_t thread;

    pthread_barrier_init(&both_began, NULL, 2);
    pthread_create(&thread, NULL, cross, &first);
    cross(&second);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&both_began);
    ok(first.result == APR_SUCCESS && second.result == APR_SUCCESS,
       "two transactions that wait for each other both succeed");
    ok(first.runs + second.runs >= 3, "at least one of them is run again");
    is_int(count(db, p), before + 2, "each of them is committed once");
}

/* An effect that continues although a statement has failed. */
static apr_status_t read_after_error(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    mdl_db_command(on, "DO $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '55P03'; END $$");
    read_count(on, p, arg);
    return read_count(on, p, arg);
}

static void test_pgsql_first_error(apr_pool_t *p)
{
    apr_int64_t n;

    is_int(mdl_db_write(db, read_after_error, &n, p), MDL_DB_ELOCKED,
           "a transaction returns the first of its errors");
    ok(strstr(mdl_db_error(db), "as asked") != NULL, "its message is kept");
}

/* After a failover the server of the connection may have become a standby. */
static void test_pgsql_read_only(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);

    mdl_db_command(db, "SET default_transaction_read_only = on");
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "a connection that has become read-only is opened again");
    is_int(count(db, p), before + 1, "the write is committed once");
}

static void test_pgsql_out_of_reach(apr_pool_t *p)
{
    const char *server = getenv("MDL_TEST_PGSQL");
    const char *name = apr_psprintf(p, "mdl_unit_%ld", (long)getpid());
    apr_int64_t before = count(db, p);
    apr_int64_t n;

    pgsql_command(server,
                  apr_pstrcat(p, "ALTER DATABASE ", name, " ALLOW_CONNECTIONS false", NULL));
    pgsql_command(server, apr_psprintf(p,
                                       "SELECT pg_terminate_backend(pid, 60000) "
                                       "FROM pg_stat_activity WHERE datname = '%s'",
                                       name));
    is_int(mdl_db_write(db, bump_once, NULL, p), MDL_DB_EGONE,
           "a write to an unavailable database is MDL_DB_EGONE");
    is_int(mdl_db_write(db, bump_once, NULL, p), MDL_DB_EGONE,
           "the next write is MDL_DB_EGONE, too");
    is_int(mdl_db_read(db, read_count, &n, p), MDL_DB_EGONE,
           "a read from an unavailable database is MDL_DB_EGONE");
    pgsql_command(server, apr_pstrcat(p, "ALTER DATABASE ", name, " ALLOW_CONNECTIONS true", NULL));
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "the first write after it is available again succeeds");
    is_int(count(db, p), before + 1, "that write is committed once");
}

/* Uses a server of its own, because other programs use MDL_TEST_PGSQL's at the same time. */
static void test_pgsql_restarted(apr_pool_t *p)
{
    const char *folder, *start, *stop;
    database_t own = *database;
    apr_int64_t before;
    mdl_db_t *on;

    if (access("tools/postgres", X_OK) != 0 || geteuid() == 0) {
        printf("# a server can't be started from here\n");
        return;
    }
    folder = output_of("mktemp -d", p);
    start = apr_psprintf(p, "tools/postgres start '%s'", folder);
    stop = apr_psprintf(p, "tools/postgres stop '%s' immediate", folder);
    ok(system(start) == 0, "a server is started");
    own.params = output_of(apr_psprintf(p, "tools/postgres params '%s'", folder), p);
    on = database_ready(&own, p);
    mdl_db_command(on, "SET synchronous_commit = on");
    before = count(on, p);
    mdl_db_write(on, bump_once, NULL, p);
    ok(system(stop) == 0, "the server is stopped");
    is_int(mdl_db_write(on, bump_once, NULL, p), MDL_DB_EGONE,
           "a write to a stopped server is MDL_DB_EGONE");
    ok(system(start) == 0, "the server is started");
    is_int(mdl_db_write(on, bump_once, NULL, p), APR_SUCCESS, "the next write succeeds");
    is_int(count(on, p), before + 2, "what was written before the stop is still there");
    (void)!system(stop);
    (void)!system(apr_psprintf(p, "rm -rf '%s'", folder));
}

static void tests(const database_t *on, apr_pool_t *p)
{
    database = on;
    db = database_ready(database, p);
    test_schema_changed(p);
    if (database->dialect == MDL_SQLITE3) {
        test_sqlite_replaced(p);
    }
    if (database->dialect == MDL_PGSQL) {
        test_pgsql_lost(p);
        test_pgsql_deallocated(p);
        test_pgsql_settings(p);
        test_pgsql_classes(p);
        test_pgsql_read_too_long(p);
        test_pgsql_deadlock(p);
        test_pgsql_first_error(p);
        test_pgsql_read_only(p);
        test_pgsql_out_of_reach(p);
        test_pgsql_restarted(p);
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
