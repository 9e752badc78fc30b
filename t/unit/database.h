/*
 * Shared by the tests that use a database: on_each_database runs them on a fresh SQLite file and,
 * if MDL_TEST_PGSQL has libpq's parameters of a server, on a fresh database of PostgreSQL.  It also
 * has clocks that can be put forward and stopped, so that no test waits for a lease or a time limit
 * to end, or reaches one because the machine is slow.
 */
#ifndef MDL_T_UNIT_DATABASE_H
#define MDL_T_UNIT_DATABASE_H

#include "t/unit/tap.h"

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "db/db.h"
#include "db/migrate.h"

/* How far this program's wall clock and monotonic clock are ahead of the system's, and whether
   apr_sleep puts both forward instead of waiting. */
static atomic_llong clock_ahead;
static atomic_llong monotonic_ahead;
static atomic_int sleep_at_once;

/* The system's clocks when they were stopped. */
static atomic_int clocks_stopped;
static struct timespec stopped_at[2]; /* CLOCK_REALTIME and CLOCK_MONOTONIC */

/* These replace libc's and APR's functions; visible, so that the libraries use them too. */

/* The tests' files must survive a crash of a process, but not of the machine. */

static atomic_ullong synced_file; /* the inode of the last synced file */

__attribute__((visibility("default"))) int fsync(int fd)
{
    struct stat file;

    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) {
        atomic_store(&synced_file, file.st_ino);
    }
    return 0;
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    return fsync(fd);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    int stands = atomic_load(&clocks_stopped) &&
                 (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC);
    int failed = stands ? 0 : (int)syscall(SYS_clock_gettime, clock, now);

    if (stands) {
        *now = stopped_at[clock];
    }
    if (!failed && clock == CLOCK_MONOTONIC) {
        long long ahead = atomic_load(&monotonic_ahead) * 1000 + now->tv_nsec;

        now->tv_sec += ahead / 1000000000;
        now->tv_nsec = ahead % 1000000000;
    }
    return failed;
}

__attribute__((visibility("default"))) apr_time_t apr_time_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (apr_time_t)now.tv_sec * APR_USEC_PER_SEC + now.tv_nsec / 1000 +
           atomic_load(&clock_ahead);
}

__attribute__((visibility("default"))) void apr_sleep(apr_interval_time_t t)
{
    if (atomic_load(&sleep_at_once)) {
        atomic_fetch_add(&clock_ahead, t);
        atomic_fetch_add(&monotonic_ahead, t);
        sched_yield();
    } else {
        usleep((useconds_t)t);
    }
}

/** From now on time passes only when the test puts a clock forward. */
static inline void stop_clocks(void)
{
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &stopped_at[CLOCK_REALTIME]);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &stopped_at[CLOCK_MONOTONIC]);
    atomic_store(&clocks_stopped, 1);
}

/** Time passes again. */
static inline void let_clocks_run(void)
{
    atomic_store(&clocks_stopped, 0);
}

typedef struct {
    mdl_dialect_t dialect;
    const char *driver;
    const char *params;
    apr_pool_t *pool;
} database_t;

/** Executes SQL on a PostgreSQL server, independently of the code under test. */
static inline int pgsql_command(const char *params, const char *sql)
{
    PGconn *connection = PQconnectdb(params);
    PGresult *result = PQexec(connection, "SET statement_timeout = 0");
    ExecStatusType status;

    PQclear(result);
    result = PQexec(connection, sql);
    status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        printf("# %s: %s", sql, PQerrorMessage(connection));
    }
    PQclear(result);
    PQfinish(connection);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/** Opens a separate connection, which lives as long as p.  Ends the program if that fails. */
static inline mdl_db_t *database_open(const database_t *database, apr_pool_t *p)
{
    const char *why;
    mdl_db_t *db;

    if (mdl_db_open(&db, database->driver, database->params, &why, p) != APR_SUCCESS) {
        printf("Bail out! %s: %s\n", database->driver, why);
        exit(2);
    }
    if (database->dialect == MDL_PGSQL) {
        mdl_db_command(db, "SET synchronous_commit = off");
    }
    return db;
}

/** Lets a connection to PostgreSQL wait longer for a lock than the service does: the machine may be
    busy. */
static inline void database_is_patient(mdl_db_t *db)
{
    mdl_db_command(db, "SET lock_timeout = 60000; SET statement_timeout = 60000");
}

/** Opens a connection and brings the schema up to date. */
static inline mdl_db_t *database_ready(const database_t *database, apr_pool_t *p)
{
    mdl_db_t *db = database_open(database, p);
    int applied;

    if (mdl_migrate(db, &applied, p) != APR_SUCCESS) {
        printf("Bail out! migrate: %s\n", mdl_db_error(db));
        exit(2);
    }
    return db;
}

static inline void remove_files(const char *folder, apr_pool_t *p)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        unlink(apr_pstrcat(p, folder, "/", entry->d_name, NULL));
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(folder);
}

typedef void database_tests_fn(const database_t *database, apr_pool_t *p);

static inline void on_sqlite(database_tests_fn *tests, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    char *folder = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/mdl-unit.XXXXXX", NULL);
    database_t database = {.dialect = MDL_SQLITE3, .driver = "sqlite3", .pool = p};
    apr_pool_t *pool;

    if (mkdtemp(folder) == NULL) {
        printf("Bail out! %s can't be made\n", folder);
        exit(2);
    }
    printf("# SQLite\n");
    database.params = apr_pstrcat(p, folder, "/db.sqlite", NULL);
    apr_pool_create(&pool, p);
    tests(&database, pool);
    apr_pool_destroy(pool);
    remove_files(folder, p);
}

static inline void on_pgsql(const char *server, database_tests_fn *tests, apr_pool_t *p)
{
    const char *name = apr_psprintf(p, "mdl_unit_%ld", (long)getpid());
    database_t database = {.dialect = MDL_PGSQL, .driver = "pgsql", .pool = p};
    apr_pool_t *pool;

    if (!pgsql_command(server, apr_pstrcat(p, "CREATE DATABASE ", name, NULL))) {
        printf("Bail out! no PostgreSQL at MDL_TEST_PGSQL\n");
        exit(2);
    }
    printf("# PostgreSQL\n");
    database.params = apr_pstrcat(p, server, " dbname=", name, NULL);
    apr_pool_create(&pool, p);
    tests(&database, pool);
    apr_pool_destroy(pool);
    pgsql_command(server, apr_pstrcat(p, "DROP DATABASE ", name, " WITH (FORCE)", NULL));
}

static inline void on_each_database(database_tests_fn *tests, apr_pool_t *p)
{
    const char *server = getenv("MDL_TEST_PGSQL");

    mdl_db_configure();
    on_sqlite(tests, p);
    if (server != NULL && *server != '\0') {
        on_pgsql(server, tests, p);
    } else {
        printf("# MDL_TEST_PGSQL is not set: nothing is checked on PostgreSQL\n");
    }
    atomic_store(&clock_ahead, 0);
}

/* Processes.  A child must end by child_end: its pools and connections belong to the parent. */

static inline pid_t child_begin(void)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        tap_failures = 0;
    }
    return pid;
}

static inline void child_end(int good)
{
    fflush(stdout);
    _exit(good ? 0 : 1);
}

/** Whether a child succeeded. */
static inline int child_good(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif
