#include "worker/database.h"

#include <apr_time.h>

#include "base/log.h"
#include "db/migrate.h"

#define PAUSE apr_time_from_sec(1)

struct mdl_worker_db_t {
    const mdl_settings_t *settings;
    apr_pool_t *pool;
    apr_pool_t *connection_pool;
    mdl_db_t *db; /* NULL while the database is out of reach */
    int connections;
    int migrated;
    int away;
    apr_time_t next_attempt;
};

mdl_worker_db_t *mdl_worker_db_create(const mdl_settings_t *settings, apr_pool_t *p)
{
    mdl_worker_db_t *database = apr_pcalloc(p, sizeof *database);

    database->settings = settings;
    database->pool = p;
    return database;
}

void mdl_worker_db_close(mdl_worker_db_t *database)
{
    if (database->connection_pool != NULL) {
        apr_pool_destroy(database->connection_pool);
    }
    database->connection_pool = NULL;
    database->db = NULL;
}

/* The parent could not when the database was away at its start. */
static apr_status_t worker_db_migrate(mdl_worker_db_t *database)
{
    int applied;
    apr_status_t rv;

    if (database->migrated || !database->settings->migrate) {
        return APR_SUCCESS;
    }
    rv = mdl_migrate(database->db, &applied, database->connection_pool);
    database->migrated = rv == APR_SUCCESS;
    return rv;
}

static apr_status_t open_connection(mdl_worker_db_t *database, const char **why)
{
    const mdl_settings_t *settings = database->settings;
    apr_status_t rv;

    apr_pool_create(&database->connection_pool, database->pool);
    apr_pool_tag(database->connection_pool, "mdl_worker_db");
    rv = mdl_db_open(&database->db, settings->db_driver, settings->db_params, why,
                     database->connection_pool);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *why = "its schema can't be brought up to date";
    return worker_db_migrate(database);
}

int mdl_worker_db_connect(mdl_worker_db_t *database)
{
    const char *why;

    if (database->db != NULL) {
        return database->connections;
    }
    if (apr_time_now() < database->next_attempt) {
        return 0;
    }
    if (open_connection(database, &why) != APR_SUCCESS) {
        if (!database->away) {
            mdl_log(MDL_LOG_ERR, 0,
                    "MDL0320: the background process can't reach the database and goes on trying: "
                    "%s",
                    why);
        }
        database->away = 1;
        database->next_attempt = apr_time_now() + PAUSE;
        mdl_worker_db_close(database);
        return 0;
    }
    if (database->away) {
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0321: the background process reached the database again");
    }
    database->away = 0;
    return ++database->connections;
}

static apr_status_t closed_if_lost(mdl_worker_db_t *database, apr_status_t rv)
{
    if (rv == MDL_DB_EGONE) {
        database->next_attempt = apr_time_now() + PAUSE;
        mdl_worker_db_close(database);
    }
    return rv;
}

apr_status_t mdl_worker_db_write(mdl_worker_db_t *database, mdl_effect_fn *effect, void *arg,
                                 apr_pool_t *p)
{
    return mdl_worker_db_connect(database)
               ? closed_if_lost(database, mdl_db_write(database->db, effect, arg, p))
               : MDL_DB_EGONE;
}

apr_status_t mdl_worker_db_read(mdl_worker_db_t *database, mdl_effect_fn *effect, void *arg,
                                apr_pool_t *p)
{
    return mdl_worker_db_connect(database)
               ? closed_if_lost(database, mdl_db_read(database->db, effect, arg, p))
               : MDL_DB_EGONE;
}
