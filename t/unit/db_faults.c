/*
 * A connection while other programs hold locks, or the disk is full.
 */
#include "t/unit/counter.h"

#include <pthread.h>
#include <signal.h>

#include <sqlite3.h>

#include <apr_dbd.h>

#include "base/clock.h"

static const database_t *database;
static mdl_db_t *db;

/* A process that has incremented the counter in an open transaction. */

typedef struct {
    pid_t pid;
    int release; /* closing it makes the process commit */
    int ready;   /* the process's ends of the pipes */
    int released;
} holder_t;

static apr_status_t bump_and_hold(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    holder_t *holder = arg;
    apr_int64_t changed;
    apr_status_t rv = mdl_db_exec(on, &changed, p, MDL_Q(EPOCH_BUMP));
    char byte = 0;

    (void)!write(holder->ready, &byte, 1);
    (void)!read(holder->released, &byte, 1);
    return rv;
}

static void holder_begin(holder_t *holder, apr_pool_t *p)
{
    int ready[2], release[2];
    char byte;

    if (pipe(ready) != 0 || pipe(release) != 0) {
        exit(2);
    }
    holder->ready = ready[1];
    holder->release = release[1];
    holder->released = release[0];
    if ((holder->pid = child_begin()) == 0) {
        close(release[1]);
        child_end(mdl_db_write(database_open(database, p), bump_and_hold, holder, p) ==
                  APR_SUCCESS);
    }
    close(ready[1]);
    close(release[0]);
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
}

static int holder_end(holder_t *holder)
{
    close(holder->release);
    return child_good(holder->pid);
}

static void test_busy(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    holder_t holder;

    holder_begin(&holder, p);
    is_int(count(db, p), before, "while a transaction is open, others read the state before it");
    atomic_store(&sleep_at_once, 1); /* SQLite */
    mdl_db_command(db, database->dialect == MDL_PGSQL ? "SET lock_timeout = 50" : "SELECT 1");
    is_int(mdl_db_write(db, bump_once, NULL, p),
           database->dialect == MDL_PGSQL ? MDL_DB_ELOCKED : MDL_DB_EBUSY,
           "waiting too long for a lock gives MDL_DB_ELOCKED, on SQLite MDL_DB_EBUSY");
    atomic_store(&sleep_at_once, 0);
    mdl_db_command(db, database->dialect == MDL_PGSQL ? "SET lock_timeout = 5000" : "SELECT 1");
    ok(holder_end(&holder), "the lock's holder commits");
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS, "a write succeeds after that");
    is_int(count(db, p), before + 2, "each of them has written once");
}

static void *set_clock_and_release(void *data)
{
    holder_t *holder = data;

    usleep(50000);
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(3600));
    usleep(50000);
    close(holder->release);
    return NULL;
}

static void test_clock_set(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    pthread_t other;
    holder_t holder;

    holder_begin(&holder, p);
    pthread_create(&other, NULL, set_clock_and_release, &holder);
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "setting the system's clock does not end a wait for a lock");
    pthread_join(other, NULL);
    ok(child_good(holder.pid), "the lock's holder commits");
    is_int(count(db, p), before + 2, "each of them has written once");
}

static void test_killed_holder(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    holder_t holder;
    int status;

    holder_begin(&holder, p);
    kill(holder.pid, SIGKILL);
    waitpid(holder.pid, &status, 0);
    close(holder.release);
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "a writer that is killed in its transaction releases its lock");
    is_int(count(db, p), before + 1, "its transaction is rolled back");
}

/* --- many at once --- */

#define PROCESSES 3
#define THREADS   4
#define WRITES    25

static void *write_often(void *data)
{
    apr_status_t rv = APR_SUCCESS;
    mdl_db_t *own;
    apr_pool_t *p;

    (void)data;
    apr_pool_create_unmanaged_ex(&p, NULL, NULL);
    own = database_open(database, p);
    for (int i = 0; i < WRITES && rv == APR_SUCCESS; i++) {
        rv = mdl_db_write(own, bump_once, NULL, p);
    }
    apr_pool_destroy(p);
    return rv == APR_SUCCESS ? data : "failed";
}

static void test_writers_at_once(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    pid_t children[PROCESSES];
    int good = 1;

    for (int i = 0; i < PROCESSES; i++) {
        if ((children[i] = child_begin()) == 0) {
            pthread_t threads[THREADS];
            void *failed;

            for (int t = 0; t < THREADS; t++) {
                pthread_create(&threads[t], NULL, write_often, NULL);
            }
            for (int t = 0; t < THREADS; t++) {
                pthread_join(threads[t], &failed);
                good &= failed == NULL;
            }
            child_end(good);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        good &= child_good(children[i]);
    }
    ok(good, "twelve threads in three processes all get to write");
    is_int(count(db, p), before + PROCESSES * THREADS * WRITES, "and no write is lost");
}

#define OPENINGS 8

static void test_opened_and_closed_at_once(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    pid_t children[PROCESSES * 2];
    int good = 1;

    for (int i = 0; i < PROCESSES * 2; i++) {
        if ((children[i] = child_begin()) == 0) {
            for (int n = 0; n < OPENINGS && good; n++) {
                apr_pool_t *own;

                apr_pool_create(&own, p);
                good = mdl_db_write(database_open(database, own), bump_once, NULL, own) ==
                       APR_SUCCESS;
                apr_pool_destroy(own);
            }
            child_end(good);
        }
    }
    for (int i = 0; i < PROCESSES * 2; i++) {
        good &= child_good(children[i]);
    }
    ok(good, "processes that open, write and close at the same time don't hinder each other");
    is_int(count(db, p), before + PROCESSES * 2 * OPENINGS, "and no write is lost");
}

/* Threads that wait for one writer: on SQLite they share one commit afterwards. */

typedef struct {
    pthread_t thread;
    int number;
    atomic_int *waiting;
    apr_status_t result;
} waiter_t;

static apr_status_t bump_as_waiter(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const waiter_t *waiter = arg;
    apr_status_t rv = bump(on, p);

    if (rv == APR_SUCCESS && waiter->number % 4 == 1) {
        return APR_EGENERAL;
    }
    if (rv == APR_SUCCESS && waiter->number % 4 == 2) {
        /* the version is there already */
        return mdl_db_exec(on, NULL, p,
                           MDL_Q(MIGRATION_INSERT, .version = 1, .name = "again", .fingerprint = "",
                                 .runs_with = 1, .build = "", .now = 1));
    }
    return rv;
}

static void *be_waiter(void *data)
{
    waiter_t *waiter = data;
    apr_pool_t *p;
    mdl_db_t *own;

    apr_pool_create_unmanaged_ex(&p, NULL, NULL);
    own = database_open(database, p);
    if (database->dialect == MDL_PGSQL) {
        database_is_patient(own);
    }
    atomic_fetch_add(waiter->waiting, 1);
    waiter->result = mdl_db_write(own, bump_as_waiter, waiter, p);
    apr_pool_destroy(p);
    return NULL;
}

#define WAITERS 12

static void test_group(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    waiter_t waiters[WAITERS];
    atomic_int waiting = 0;
    int refused = 0, unique = 0, written = 0;
    holder_t holder;

    stop_clocks(); /* SQLite: on a busy machine they wait for longer than the service does */
    holder_begin(&holder, p);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (waiter_t){.number = i, .waiting = &waiting};
        pthread_create(&waiters[i].thread, NULL, be_waiter, &waiters[i]);
    }
    while (atomic_load(&waiting) < WAITERS) {
        usleep(1000);
    }
    holder_end(&holder);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        refused += i % 4 == 1 && waiters[i].result == APR_EGENERAL;
        unique += i % 4 == 2 && waiters[i].result == MDL_DB_EUNIQUE;
        written += waiters[i].result == APR_SUCCESS;
    }
    let_clocks_run();
    is_int(refused, WAITERS / 4, "a waiting writer whose effect fails gets the effect's status");
    is_int(unique, WAITERS / 4,
           "a waiting writer whose statement fails gets the statement's error");
    is_int(written, WAITERS / 2, "the other waiting writers succeed");
    is_int(count(db, p), before + 1 + WAITERS / 2, "and only what they wrote is there");
}

/* --- SQLite alone --- */

static apr_status_t insert_large(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    apr_status_t rv = bump(on, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(on, NULL, p,
                       MDL_Q(MIGRATION_INSERT, .version = -7, .name = arg, .fingerprint = "",
                             .runs_with = 1, .build = "", .now = 1));
}

/* How many of this process's open files have a path with this prefix. */
static int open_files(const char *path)
{
    DIR *files = opendir("/proc/self/fd");
    struct dirent *entry;
    char name[64], target[512];
    int n = 0;

    while ((entry = readdir(files)) != NULL) {
        ssize_t length;

        apr_snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
        length = readlink(name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        n += strncmp(target, path, strlen(path)) == 0;
    }
    closedir(files);
    return n;
}

#define CONNECTIONS 4

static void test_sqlite_writer(apr_pool_t *p)
{
    database_t own = *database;
    pid_t child;

    own.params = apr_pstrcat(p, database->params, "-own", NULL);
    if ((child = child_begin()) == 0) { /* a process without other connections */
        apr_pool_t *pool;
        mdl_db_t *on;
        int good = 1;

        apr_pool_create(&pool, p);
        on = database_ready(&own, pool);
        for (int i = 0; i < CONNECTIONS && good; i++) {
            on = database_open(&own, pool);
            good = mdl_db_write(on, bump_once, NULL, pool) == APR_SUCCESS;
        }
        good &= open_files(apr_pstrcat(p, own.params, "-writer", NULL)) == 1;
        apr_pool_destroy(pool);
        child_end(good && open_files(own.params) == 0);
    }
    ok(child_good(child),
       "a process has one writing connection, which is closed with the last of its connections");
}

/* Sets a limit on the connection that writes. */
static apr_status_t limit_pages(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    (void)p;
    return mdl_db_command(on, arg);
}

static void test_sqlite_full(apr_pool_t *p)
{
    char *large = memset(apr_pcalloc(p, 4 << 20), 'x', (4 << 20) - 1);
    apr_int64_t before = count(db, p);

    mdl_db_write(db, limit_pages, "PRAGMA max_page_count = 200", p);
    is_int(mdl_db_write(db, insert_large, large, p), MDL_DB_EFULL, "a full disk is MDL_DB_EFULL");
    is_int(count(db, p), before, "the transaction is rolled back");
    mdl_db_command(db, "PRAGMA max_page_count = 200");
    is_int(mdl_db_command(db, "CREATE TABLE large AS SELECT zeroblob(4194304)"), MDL_DB_EFULL,
           "a command on a full disk is MDL_DB_EFULL");
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "a write that needs no space succeeds");
    mdl_db_write(db, limit_pages, "PRAGMA max_page_count = 1000000", p);
    mdl_db_command(db, "PRAGMA max_page_count = 1000000");
    is_int(mdl_db_write(db, insert_large, large, p), APR_SUCCESS,
           "the same write succeeds when there is space again");
}

/* If the disk fills up during a shared commit, all its writes fail. */

static char *large_name;

static apr_status_t bump_or_fill(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const waiter_t *waiter = arg;

    return waiter->number == 3 ? insert_large(on, p, large_name) : bump(on, p);
}

static void *be_limited_waiter(void *data)
{
    waiter_t *waiter = data;
    apr_pool_t *p;
    mdl_db_t *own;

    apr_pool_create_unmanaged_ex(&p, NULL, NULL);
    own = database_open(database, p);
    atomic_fetch_add(waiter->waiting, 1);
    waiter->result = mdl_db_write(own, bump_or_fill, waiter, p);
    apr_pool_destroy(p);
    return NULL;
}

static void test_sqlite_full_in_group(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    waiter_t waiters[WAITERS];
    atomic_int waiting = 0;
    int full = 0, written = 0;
    holder_t holder;

    large_name = memset(apr_pcalloc(p, 4 << 20), 'x', (4 << 20) - 1);
    mdl_db_write(db, limit_pages, "PRAGMA max_page_count = 200", p);
    stop_clocks(); /* SQLite: on a busy machine they wait for longer than the service does */
    holder_begin(&holder, p);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (waiter_t){.number = i, .waiting = &waiting};
        pthread_create(&waiters[i].thread, NULL, be_limited_waiter, &waiters[i]);
    }
    while (atomic_load(&waiting) < WAITERS) {
        usleep(1000);
    }
    holder_end(&holder);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        full += waiters[i].result == MDL_DB_EFULL;
        written += waiters[i].result == APR_SUCCESS;
    }
    let_clocks_run();
    is_int(waiters[3].result, MDL_DB_EFULL,
           "a waiting writer that fills the disk gets MDL_DB_EFULL");
    is_int(full + written, WAITERS, "each of the others gets MDL_DB_EFULL or succeeds");
    is_int(count(db, p), before + 1 + written, "and only what they wrote is there");
}

/* A program that does not use our lock file. */
static void test_sqlite_foreign_writer(apr_pool_t *p)
{
    apr_time_t began = apr_time_now();
    sqlite3 *other = NULL;

    sqlite3_open(database->params, &other);
    sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    atomic_store(&sleep_at_once, 1);
    is_int(mdl_db_write(db, bump_once, NULL, p), MDL_DB_EBUSY,
           "a transaction that begins while another program writes gets MDL_DB_EBUSY");
    ok(apr_time_now() - began >= apr_time_from_sec(5), "after at least 5 s");
    is_int(mdl_db_read(db, bump_once, NULL, p), MDL_DB_EBUSY,
           "a statement outside of a transaction gets MDL_DB_EBUSY");
    atomic_store(&sleep_at_once, 0);
    sqlite3_exec(other, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(other);
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "a write succeeds once the other program has committed");
}

/* A connection that reads endless rows until it is stopped. */

typedef struct {
    const apr_dbd_driver_t *driver;
    apr_dbd_t *handle;
    mdl_db_t *db;
    apr_pool_t *pool;
    apr_time_t give_up_at;
    atomic_int stepping;
    atomic_int stopped;
    apr_status_t result;
} endless_t;

static int endless_step(void *data)
{
    endless_t *endless = data;

    atomic_store(&endless->stepping, 1);
    return atomic_load(&endless->stopped) || mdl_clock_monotonic() > endless->give_up_at;
}

static apr_status_t endless_close(void *data)
{
    endless_t *endless = data;

    return apr_dbd_close(endless->driver, endless->handle);
}

static void endless_open(endless_t *endless, apr_pool_t *p)
{
    endless->pool = p;
    apr_dbd_get_driver(p, database->driver, &endless->driver);
    apr_dbd_open(endless->driver, p, database->params, &endless->handle);
    apr_pool_cleanup_register(p, endless, endless_close, apr_pool_cleanup_null);
    mdl_db_attach(&endless->db, endless->driver, endless->handle, database->params, p);
    mdl_db_command(endless->db, "CREATE TEMP VIEW epoch AS WITH RECURSIVE row(n) AS "
                                "(SELECT 1 UNION ALL SELECT n + 1 FROM row) "
                                "SELECT max(n) AS n, 1 AS id FROM row");
    endless->give_up_at = mdl_clock_monotonic() + apr_time_from_sec(60);
    sqlite3_progress_handler(apr_dbd_native_handle(endless->driver, endless->handle), 1000,
                             endless_step, endless);
}

static void *endless_read(void *data)
{
    endless_t *endless = data;
    apr_int64_t n;

    endless->result = mdl_db_read(endless->db, read_count, &n, endless->pool);
    return NULL;
}

#define MEANWHILE 50

static void test_sqlite_endless_reader(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    endless_t endless = {.stopped = 0};
    pthread_t thread;
    apr_pool_t *own;
    int good = 0;

    apr_pool_create_unmanaged_ex(&own, NULL, NULL);
    endless_open(&endless, own);
    pthread_create(&thread, NULL, endless_read, &endless);
    while (!atomic_load(&endless.stepping)) {
        usleep(1000);
    }
    for (int i = 1; i <= MEANWHILE; i++) {
        good += mdl_db_write(db, bump_once, NULL, p) == APR_SUCCESS && count(db, p) == before + i;
    }
    ok(mdl_clock_monotonic() < endless.give_up_at,
       "the others need not wait while one connection reads rows");
    is_int(good, MEANWHILE, "they read and write meanwhile");
    atomic_store(&endless.stopped, 1);
    pthread_join(thread, NULL);
    is_int(endless.result, MDL_DB_EOTHER, "the reader went on until it was stopped");
    apr_pool_destroy(own);
}

static void tests(const database_t *on, apr_pool_t *p)
{
    database = on;
    db = database_ready(database, p);
    test_busy(p);
    test_clock_set(p);
    test_killed_holder(p);
    test_writers_at_once(p);
    test_opened_and_closed_at_once(p);
    test_group(p);
    if (database->dialect == MDL_SQLITE3) {
        test_sqlite_writer(p);
        test_sqlite_full_in_group(p);
        test_sqlite_full(p);
        test_sqlite_foreign_writer(p);
        test_sqlite_endless_reader(p);
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
