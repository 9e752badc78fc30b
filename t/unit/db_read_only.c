/*
 * A database that is read-only for a while: a standby, or a file that another user owns.  Failures
 * meanwhile leak neither memory nor descriptors, and the same connection writes again afterwards.
 */
#include "t/unit/counter.h"

#include <sys/stat.h>

#include <apr_dbd.h>

#include "base/log.h"

#define PGSQL_WRITES  300 /* each reconnects */
#define SQLITE_WRITES 100000
#define WARM_UP       100
#define MOST_GROWTH   2048 /* KiB */

static const database_t *database;

static long resident_kib(void)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    long size, resident = 0;

    if (statm != NULL) {
        if (fscanf(statm, "%ld %ld", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(statm);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Makes the database read-only for new connections, or writable again. */
static void set_read_only(int read_only, apr_pool_t *p)
{
    if (database->dialect == MDL_PGSQL) {
        PGconn *connection = PQconnectdb(database->params);

        PQclear(PQexec(connection, "SET default_transaction_read_only = off"));
        PQclear(PQexec(connection, apr_psprintf(p,
                                                "ALTER DATABASE %s SET "
                                                "default_transaction_read_only = %s",
                                                PQdb(connection), read_only ? "on" : "off")));
        PQfinish(connection);
        return;
    }
    for (int i = 0; i < 3; i++) {
        static const char *const ends[] = {"", "-wal", "-shm"};

        chmod(apr_pstrcat(p, database->params, ends[i], NULL), read_only ? 0440 : 0640);
    }
}

static int descriptors(void)
{
    DIR *files = opendir("/proc/self/fd");
    int n = 0;

    while (files != NULL && readdir(files) != NULL) {
        n++;
    }
    closedir(files);
    return n;
}

typedef struct {
    const apr_dbd_driver_t *driver;
    apr_dbd_t *handle;
} opened_t;

static apr_status_t close_opened(void *data)
{
    opened_t *opened = data;

    return apr_dbd_close(opened->driver, opened->handle);
}

/* Opens a connection as mod_dbd does, even if it is of no use. */
static mdl_db_t *attach(apr_pool_t *p)
{
    opened_t *opened = apr_pcalloc(p, sizeof *opened);
    mdl_db_t *db = NULL;

    apr_dbd_get_driver(p, database->driver, &opened->driver);
    apr_dbd_open(opened->driver, p, database->params, &opened->handle);
    apr_pool_cleanup_register(p, opened, close_opened, apr_pool_cleanup_null);
    mdl_db_attach(&db, opened->driver, opened->handle, database->params, p);
    return db;
}

/* Returns how many writes were refused and followed by the expected read: success, or on SQLite a
   refusal too, because reading the file would keep it read-only. */
static int write_in_vain(mdl_db_t *db, int n, apr_pool_t *p)
{
    apr_status_t can_read = database->dialect == MDL_PGSQL ? APR_SUCCESS : MDL_DB_EGONE;
    apr_pool_t *turn;
    int refused = 0;

    apr_pool_create(&turn, p);
    for (int i = 0; i < n; i++) {
        apr_int64_t number;

        refused += mdl_db_write(db, bump_once, NULL, turn) == MDL_DB_EGONE &&
                   mdl_db_read(db, read_count, &number, turn) == can_read;
        apr_pool_clear(turn);
    }
    apr_pool_destroy(turn);
    return refused;
}

static void be_silent(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                      const char *message)
{
    (void)file, (void)line, (void)level, (void)rv, (void)message;
}

static void tests(const database_t *on, apr_pool_t *p)
{
    int writes = on->dialect == MDL_PGSQL ? PGSQL_WRITES : SQLITE_WRITES;
    apr_pool_t *others;
    mdl_db_t *db, *other;
    long warm;
    int open;

    database = on;
    apr_pool_create(&others, p);
    other = database_ready(database, others);
    mdl_db_write(other, bump_once, NULL, p);
    mdl_log_set_sink(be_silent);
    set_read_only(1, p);
    db = attach(p);
    is_int(write_in_vain(db, WARM_UP, p), WARM_UP, "writes are refused to a new connection");
    warm = resident_kib();
    open = descriptors();
    is_int(write_in_vain(db, writes, p), writes, "for as long as it lasts");
    printf("# %ld KiB before, %ld after\n", warm, resident_kib());
    ok(resident_kib() < warm + MOST_GROWTH, "no memory is lost");
    ok(descriptors() < open + 4, "and no descriptor");
    is_int(mdl_db_write(other, bump_once, NULL, p), APR_SUCCESS,
           "a connection that was there before goes on to write");
    set_read_only(0, p);
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS, "the new one writes afterwards");
    is_int(count(db, p), count(other, p), "to the same database");
    apr_pool_destroy(others);
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS, "and goes on");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
