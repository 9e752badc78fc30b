#include "core/health/tests.h"

#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "core/health/objects.h"
#include "core/health/pgsql.h"
#include "core/health/worker.h"
#include "db/migrate.h"

static int test_objects(const mdl_health_t *health, const char **message)
{
    return health->settings->storage.objects.url == NULL || mdl_health_objects(health, message);
}

static int test_templates(const mdl_health_t *health, const char **message)
{
    apr_array_header_t *problems = apr_array_make(health->p, 5, sizeof(const char *));

    mdl_settings_check_templates(health->settings, problems, health->p);
    *message = apr_array_pstrcat(health->p, problems, ' ');
    return problems->nelts == 0;
}

const mdl_health_test_t mdl_health_tests[MDL_HEALTH_TESTS] = {
    {.name = "version", .run = mdl_health_build},
    {.name = "secret", .run = mdl_health_secret},
    {.name = "storage", .run = mdl_health_storage, .of_node = 1},
    {.name = "objects", .run = test_objects, .seldom = 1},
    {.name = "templates", .run = test_templates, .of_node = 1, .seldom = 1},
    {.name = "imports", .run = mdl_health_imports},
    {.name = "mail", .run = mdl_health_mail, .seldom = 1},
    {.name = "bounces", .run = mdl_health_bounces},
    {.name = "worker", .run = mdl_health_worker},
};

/* Opening SQLite's file would make another one. */
static int file_is_there(const mdl_settings_t *settings)
{
    return strcmp(settings->db_driver, "sqlite3") != 0 || access(settings->db_params, F_OK) == 0;
}

static int database_opens(mdl_health_t *health, mdl_db_t **db, const char **message)
{
    const mdl_settings_t *settings = health->settings;
    const char *why = "its file is gone.";
    apr_status_t rv = MDL_DB_EGONE;
    int version;

    if (file_is_there(settings)) {
        rv = mdl_db_open(db, settings->db_driver, settings->db_params, &why, health->p);
    }
    if (rv == APR_SUCCESS && (rv = mdl_migrate_version(*db, &version, health->p)) != APR_SUCCESS) {
        why = rv == MDL_DB_ENEWER ? mdl_migrate_too_new(*db, health->p) : mdl_db_error(*db);
    }
    if (rv == APR_SUCCESS) {
        mdl_db_set_check(*db, mdl_migrate_check);
    } else {
        *message = rv == MDL_DB_ENEWER && why != NULL
                       ? apr_pstrcat(health->p, "The schema ", why, ": upgrade this node.", NULL)
                       : mdl_health_database_error(rv, why, health->p);
    }
    return rv == APR_SUCCESS;
}

int mdl_health_connect(mdl_health_t *health, const char **message)
{
    mdl_db_t *db = NULL;

    if (!database_opens(health, &db, message) || !mdl_health_sessions(health, db, message)) {
        return 0;
    }
    health->db = db;
    if (!mdl_health_database(health, message)) {
        health->db = NULL;
    }
    return health->db != NULL;
}
