/*
 * A connection that is reopened after outages.
 */
#include "t/unit/counter.h"

#include <sys/stat.h>

#include "base/log.h"
#include "db/reconnect.h"

#define SECOND apr_time_from_sec(1)

/* Log lines since the last count. */
static int lost_lines, found_lines;

static void count_lines(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                        const char *message)
{
    (void)file, (void)line, (void)rv;
    lost_lines += level == MDL_LOG_ERR && strncmp(message, "lost: ", 6) == 0;
    found_lines += level == MDL_LOG_NOTICE && strcmp(message, "found") == 0;
}

static int lines(int *counter)
{
    int n = *counter;

    *counter = 0;
    return n;
}

/* Makes a database unavailable or available again, for SQLite by renaming its folder. */
static void put(const database_t *database, int available)
{
    apr_pool_t *p = database->pool;

    if (database->dialect == MDL_SQLITE3) {
        const char *folder = apr_pstrndup(p, database->params,
                                          strlen(database->params) - strlen("/db.sqlite"));
        const char *away = apr_pstrcat(p, folder, "-away", NULL);

        rename(available ? away : folder, available ? folder : away);
        return;
    }
    pgsql_command(getenv("MDL_TEST_PGSQL"),
                  apr_psprintf(p, "ALTER DATABASE mdl_unit_%ld ALLOW_CONNECTIONS %s",
                               (long)getpid(), available ? "true" : "false"));
    pgsql_command(getenv("MDL_TEST_PGSQL"),
                  apr_psprintf(p,
                               "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
                               "WHERE datname = 'mdl_unit_%ld'",
                               (long)getpid()));
}

static void test_outages(const database_t *database, apr_pool_t *p)
{
    const mdl_reconnect_config_t config = {.driver = database->driver,
                                           .params = database->params,
                                           .migrate = 1,
                                           .lost = "lost",
                                           .found = "found"};
    mdl_reconnect_t *reconnect = mdl_reconnect_create(&config, p);
    apr_int64_t before, after;

    put(database, 0);
    is_int(lines(&lost_lines), 0, "no connection is made before it is used");
    is_int(mdl_reconnect_write(reconnect, bump_once, NULL, p), MDL_DB_EGONE,
           "a write to an unavailable database is MDL_DB_EGONE");
    is_int(lines(&lost_lines), 1, "the log says why");
    put(database, 1);
    atomic_fetch_add(&clock_ahead, 3600 * SECOND);
    is_int(mdl_reconnect_connect(reconnect), 0,
           "the next attempt is not made at once, even if the system's clock is set");
    atomic_fetch_add(&monotonic_ahead, SECOND);
    put(database, 0);
    is_int(mdl_reconnect_connect(reconnect), 0, "the next attempt is made a second later");
    is_int(lines(&lost_lines), 0, "an outage is logged once");
    put(database, 1);
    atomic_fetch_add(&monotonic_ahead, SECOND);
    is_int(mdl_reconnect_connect(reconnect), 1, "the first connection has the number 1");
    is_int(lines(&found_lines), 1, "the log says that the outage is over");
    is_int(mdl_reconnect_read(reconnect, read_count, &before, p), APR_SUCCESS,
           "the schema is up to date");
    is_int(mdl_reconnect_write(reconnect, bump_once, NULL, p), APR_SUCCESS, "a write succeeds");
    is_int(mdl_reconnect_connect(reconnect), 1, "an open connection is kept");

    put(database, 0);
    is_int(mdl_reconnect_write(reconnect, bump_once, NULL, p), MDL_DB_EGONE,
           "a write on a lost connection is MDL_DB_EGONE");
    put(database, 1);
    is_int(mdl_reconnect_connect(reconnect), 0, "a lost connection is not reopened at once");
    atomic_fetch_add(&monotonic_ahead, SECOND);
    is_int(mdl_reconnect_connect(reconnect), 2, "the next attempt is made a second later");
    is_int(mdl_reconnect_read(reconnect, read_count, &after, p), APR_SUCCESS, "a read succeeds");
    is_int(after, before + 1, "only what was written before the loss is there");
    mdl_reconnect_close(reconnect);
    is_int(mdl_reconnect_connect(reconnect), 3, "a connection that was closed is reopened at once");
    is_int(lines(&lost_lines) + lines(&found_lines), 0,
           "a loss is not logged as an outage if the next attempt succeeds");
    mdl_reconnect_close(reconnect);
}

static void tests(const database_t *database, apr_pool_t *p)
{
    database_t own = *database;

    own.pool = p;
    if (database->dialect == MDL_SQLITE3) {
        const char *folder = apr_pstrcat(p, database->params, "-folder", NULL);

        mkdir(folder, 0750);
        own.params = apr_pstrcat(p, folder, "/db.sqlite", NULL);
        test_outages(&own, p);
        remove_files(folder, p);
    } else {
        test_outages(&own, p);
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    mdl_log_set_sink(count_lines);
    stop_clocks();
    on_each_database(tests, p);
    return tap_end(p);
}
