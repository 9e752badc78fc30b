#include "db/reconnect.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/migrate.h"

#define PAUSE apr_time_from_sec(1)

struct mdl_reconnect_t {
    mdl_reconnect_config_t config;
    apr_pool_t *pool;      /* of the connection */
    mdl_db_t *db;          /* NULL while there is no connection */
    int connections;       /* made so far */
    int migrated;          /* true also if not asked to migrate */
    int lost;              /* whether the outage has been logged */
    apr_time_t not_before; /* of the next attempt, by the monotonic clock */
};

mdl_reconnect_t *mdl_reconnect_create(const mdl_reconnect_config_t *config, apr_pool_t *p)
{
    mdl_reconnect_t *reconnect = apr_pcalloc(p, sizeof *reconnect);

    reconnect->config = *config;
    reconnect->migrated = !config->migrate;
    apr_pool_create(&reconnect->pool, p);
    apr_pool_tag(reconnect->pool, "mdl_reconnect");
    return reconnect;
}

void mdl_reconnect_close(mdl_reconnect_t *reconnect)
{
    apr_pool_clear(reconnect->pool);
    reconnect->db = NULL;
}

static void reconnect_lose(mdl_reconnect_t *reconnect)
{
    reconnect->not_before = mdl_clock_monotonic() + PAUSE;
    mdl_reconnect_close(reconnect);
}

static apr_status_t reconnect_prepare_schema(mdl_reconnect_t *reconnect, const char **why)
{
    const char *too_new = mdl_migrate_too_new(reconnect->db, reconnect->pool);
    apr_status_t rv = APR_SUCCESS;
    int applied;

    if (too_new != NULL) {
        *why = apr_pstrcat(reconnect->pool, "its schema ", too_new, ": upgrade this node", NULL);
        return MDL_DB_ENEWER;
    }
    if (!reconnect->migrated) {
        rv = mdl_migrate(reconnect->db, &applied, reconnect->pool);
        *why = rv == MDL_MIGRATE_EOTHER ? "its schema " MDL_SCHEMA_OTHER
                                        : "its schema can't be brought up to date";
        reconnect->migrated = rv == APR_SUCCESS;
    }
    mdl_db_set_check(reconnect->db, mdl_migrate_check);
    return rv;
}

static apr_status_t reconnect_open(mdl_reconnect_t *reconnect, const char **why)
{
    const mdl_reconnect_config_t *config = &reconnect->config;
    apr_status_t rv = mdl_db_open(&reconnect->db, config->driver, config->params, why,
                                  reconnect->pool);

    if (rv == APR_SUCCESS) {
        rv = reconnect_prepare_schema(reconnect, why);
    }
    if (rv == APR_SUCCESS && config->accept != NULL) {
        *why = "it was lost again";
        rv = config->accept(reconnect->db, config->baton, why, reconnect->pool);
    }
    return rv;
}

int mdl_reconnect_connect(mdl_reconnect_t *reconnect)
{
    const mdl_reconnect_config_t *config = &reconnect->config;
    const char *why;

    if (reconnect->db != NULL) {
        return reconnect->connections;
    }
    if (mdl_clock_monotonic() < reconnect->not_before) {
        return 0;
    }
    if (reconnect_open(reconnect, &why) != APR_SUCCESS) {
        if (!reconnect->lost) {
            mdl_log(MDL_LOG_ERR, 0, "%s: %s", config->lost, why);
        }
        reconnect->lost = 1;
        reconnect_lose(reconnect);
        return 0;
    }
    if (reconnect->lost && config->found != NULL) {
        mdl_log(MDL_LOG_NOTICE, 0, "%s", config->found);
    }
    reconnect->lost = 0;
    return ++reconnect->connections;
}

static apr_status_t reconnect_after(mdl_reconnect_t *reconnect, apr_status_t rv)
{
    if (rv == MDL_DB_EGONE || rv == MDL_DB_ENEWER) {
        reconnect_lose(reconnect);
    }
    return rv;
}

apr_status_t mdl_reconnect_write(mdl_reconnect_t *reconnect, mdl_effect_fn *effect, void *arg,
                                 apr_pool_t *p)
{
    return mdl_reconnect_connect(reconnect)
               ? reconnect_after(reconnect, mdl_db_write(reconnect->db, effect, arg, p))
               : MDL_DB_EGONE;
}

apr_status_t mdl_reconnect_settle(mdl_reconnect_t *reconnect, mdl_effect_fn *effect, void *arg,
                                  apr_pool_t *p)
{
    return mdl_reconnect_connect(reconnect)
               ? reconnect_after(reconnect, mdl_db_settle(reconnect->db, effect, arg, p))
               : MDL_DB_EGONE;
}

int mdl_reconnect_is_closed(const mdl_reconnect_t *reconnect)
{
    return reconnect->db != NULL && mdl_db_is_closed(reconnect->db);
}

apr_status_t mdl_reconnect_read(mdl_reconnect_t *reconnect, mdl_effect_fn *effect, void *arg,
                                apr_pool_t *p)
{
    return mdl_reconnect_connect(reconnect)
               ? reconnect_after(reconnect, mdl_db_read(reconnect->db, effect, arg, p))
               : MDL_DB_EGONE;
}
