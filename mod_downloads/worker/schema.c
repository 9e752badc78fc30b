#include "worker/schema.h"

#include <sys/stat.h>
#include <unistd.h>

#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <mpm_common.h>

#include "core/catalog/storage_identity.h"
#include "db/migrate.h"
#include "worker/fork.h"

APLOG_USE_MODULE(downloads);

#define CONNECT_LIMIT_S 30
#define SERVED_KEY      "mod_downloads_served"

/* Results of the child, as its exit codes. */
enum {
    SCHEMA_CURRENT = 0,
    SCHEMA_OLD,
    SCHEMA_NEWER,
    SCHEMA_FAILED,
    DATABASE_AWAY,
    NO_FORK,
    STORAGE_OTHER
};

static int storage_prepare(const mdl_settings_t *settings, mdl_db_t *db, server_rec *s,
                           apr_pool_t *p)
{
    const char *why;
    apr_status_t rv = mdl_storage_belongs(db, settings->storage, 1, &why, p);

    if (mdl_db_unavailable(rv)) {
        return DATABASE_AWAY;
    }
    if (rv == MDL_DB_EOTHER || rv == MDL_DB_EFULL) {
        return SCHEMA_FAILED;
    }
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "MDL0350: %s", why);
        return STORAGE_OTHER;
    }
    return SCHEMA_CURRENT;
}

static int schema_prepare(const mdl_settings_t *settings, server_rec *s, apr_pool_t *p)
{
    const char *why;
    mdl_db_t *db;
    int count = 0;
    apr_status_t rv;

    /* A host that swallows packets must not hold up a restart. */
    alarm(CONNECT_LIMIT_S);
    if (mdl_db_open(&db, settings->db_driver, settings->db_params, &why, p) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "MDL0335: %s", why);
        return DATABASE_AWAY;
    }
    alarm(0);
    rv = settings->migrate ? mdl_migrate(db, &count, p) : mdl_migrate_version(db, &count, p);
    if (mdl_db_unavailable(rv)) {
        return DATABASE_AWAY;
    }
    if (rv == APR_EMISMATCH ||
        (rv == APR_SUCCESS && !settings->migrate && count > mdl_migrate_latest())) {
        return SCHEMA_NEWER;
    }
    if (rv != APR_SUCCESS) {
        return SCHEMA_FAILED;
    }
    return !settings->migrate && count < mdl_migrate_latest() ? SCHEMA_OLD
                                                              : storage_prepare(settings, db, s, p);
}

static void schema_live(const mdl_settings_t *settings, server_rec *s, const sigset_t *unblocked)
{
    apr_pool_t *pool;
    int result;

    apr_pool_create(&pool, NULL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_SETMASK, unblocked, NULL);
    umask(027); /* SQLite's file holds customers' addresses */
    if (ap_run_drop_privileges(pool, s) != OK) {
        _exit(SCHEMA_FAILED);
    }
    result = schema_prepare(settings, s, pool);
    apr_pool_destroy(pool);
    _exit(result);
}

static int schema_run_child(const mdl_settings_t *settings, server_rec *s, apr_pool_t *p)
{
    apr_proc_t process;
    apr_exit_why_e why;
    sigset_t unblocked;
    int status;
    apr_status_t rv = mdl_fork(&process, p, &unblocked);

    if (rv == APR_INCHILD) {
        schema_live(settings, s, &unblocked);
    }
    if (rv != APR_INPARENT) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, s, "MDL0348: can't fork");
        return NO_FORK;
    }
    if (apr_proc_wait(&process, &status, &why, APR_WAIT) != APR_CHILD_DONE) {
        return SCHEMA_FAILED;
    }
    if (APR_PROC_CHECK_SIGNALED(why) && status == SIGALRM) {
        return DATABASE_AWAY;
    }
    return APR_PROC_CHECK_EXIT(why) && status <= STORAGE_OTHER ? status : SCHEMA_FAILED;
}

int mdl_schema_prepare(const mdl_settings_t *settings, server_rec *s, int *has_storage,
                       apr_pool_t *p)
{
    static const char *const sentences[] = {
        [SCHEMA_OLD] = "MDL0336: the database's schema is older than this module: run "
                       "\"downloadsctl migrate\", or set DownloadsMigrate On",
        [SCHEMA_NEWER] = "MDL0337: the database's schema is newer than this module: install the "
                         "release that made it, or restore a backup",
        [SCHEMA_FAILED] = "MDL0338: the database's schema can't be brought up to date; the lines "
                          "above say why",
        [DATABASE_AWAY] = "MDL0339: the database is out of reach; requests are answered 503 until "
                          "it is back.  If its schema is not current, restart httpd then",
        [NO_FORK] =
            "MDL0349: nobody has looked at the database's schema, for there was no process to "
            "be had",
        [STORAGE_OTHER] =
            "MDL0351: the storage folder is not the database's, so no file is stored or "
            "served; the line above says what to do",
    };
    int *served = ap_retained_data_get(SERVED_KEY);
    int status = schema_run_child(settings, s, p);

    if (served == NULL) {
        served = ap_retained_data_create(SERVED_KEY, sizeof *served);
    }
    *has_storage = status != STORAGE_OTHER;
    if (status == SCHEMA_CURRENT) {
        *served = 1;
        return OK;
    }
    /* A restart must not take down what ran, other hosts of this httpd among it. */
    if (status == DATABASE_AWAY || *served) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "%s", sentences[status]);
        return OK;
    }
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_EMERG, 0, s, "%s", sentences[status]);
    return HTTP_INTERNAL_SERVER_ERROR;
}
