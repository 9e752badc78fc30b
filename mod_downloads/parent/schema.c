#include "parent/schema.h"

#include <sys/stat.h>
#include <unistd.h>

#include <apr_strings.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <mpm_common.h>

#include "core/catalog/storage_identity.h"
#include "core/shop/secret.h"
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
    SCHEMA_OTHER,
    SCHEMA_FAILED,
    DATABASE_AWAY,
    NO_FORK,
    STORAGE_OTHER,
    SECRET_OTHER,
    RESULTS
};

static int *schema_served(void)
{
    int *served = ap_retained_data_get(SERVED_KEY);

    return served != NULL ? served : ap_retained_data_create(SERVED_KEY, sizeof *served);
}

/* A restart must not stop a server that ran, with its other hosts. */
static int schema_refuses(int result)
{
    return result != SCHEMA_CURRENT && result != DATABASE_AWAY && !*schema_served();
}

static void schema_say(server_rec *s, int result, const char *sentence)
{
    int level = schema_refuses(result) ? APLOG_STARTUP | APLOG_EMERG : APLOG_ERR;

    ap_log_error(APLOG_MARK, level, 0, s, "%s", sentence);
}

static int schema_newer(mdl_db_t *db, server_rec *s, apr_pool_t *p)
{
    schema_say(s, SCHEMA_NEWER,
               apr_psprintf(p,
                            "MDL0337: the database's schema %s: install the release that made it, "
                            "or restore a backup",
                            mdl_migrate_too_new(db, p)));
    return SCHEMA_NEWER;
}

/* Under a wrong secret every key would get 401 and every link 404, and new keys and links would be
   void once the right secret is back. */
static int secret_prepare(const mdl_service_t *service, mdl_db_t *db, server_rec *s, apr_pool_t *p)
{
    mdl_secret_signed_t of = {.secret = service->secret};
    apr_status_t rv = mdl_secret_signed(db, p, &of);

    if (rv != APR_SUCCESS) {
        return mdl_db_unavailable(rv) ? DATABASE_AWAY : SCHEMA_FAILED;
    }
    if (of.is_other) {
        schema_say(s, SECRET_OTHER, apr_pstrcat(p, "MDL0141: ", mdl_secret_trouble(&of, p), NULL));
        return SECRET_OTHER;
    }
    if (of.strange > 0) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s, "MDL0142: %s", mdl_secret_trouble(&of, p));
    }
    return SCHEMA_CURRENT;
}

static int storage_prepare(const mdl_settings_t *settings, mdl_db_t *db, server_rec *s,
                           apr_pool_t *p)
{
    const char *why;
    apr_status_t rv = mdl_storage_belongs(db, &settings->storage, 1, &why, p);

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

static int schema_prepare(const mdl_service_t *service, server_rec *s, apr_pool_t *p)
{
    const mdl_settings_t *settings = service->settings;
    const char *why;
    mdl_db_t *db;
    int count = 0;
    int result;
    apr_status_t rv;

    /* An unresponsive host must not delay a restart. */
    alarm(CONNECT_LIMIT_S);
    if (mdl_db_open(&db, settings->db_driver, settings->db_params, &why, p) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "MDL0335: %s", why);
        return DATABASE_AWAY;
    }
    alarm(0);
    rv = settings->migrate ? mdl_migrate(db, &count, p) : mdl_migrate_version(db, &count, p);
    if (rv == MDL_DB_ENEWER) {
        return schema_newer(db, s, p);
    }
    if (mdl_db_unavailable(rv)) {
        return DATABASE_AWAY;
    }
    if (rv == MDL_MIGRATE_EOTHER) {
        return SCHEMA_OTHER;
    }
    if (rv != APR_SUCCESS) {
        return SCHEMA_FAILED;
    }
    if (!settings->migrate && count < mdl_migrate_latest()) {
        return SCHEMA_OLD;
    }
    result = storage_prepare(settings, db, s, p);
    return result == SCHEMA_CURRENT ? secret_prepare(service, db, s, p) : result;
}

static void schema_live(const mdl_service_t *service, server_rec *s, const sigset_t *unblocked)
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
    result = schema_prepare(service, s, pool);
    apr_pool_destroy(pool);
    _exit(result);
}

static int schema_run_child(const mdl_service_t *service, server_rec *s, apr_pool_t *p)
{
    apr_proc_t process;
    apr_exit_why_e why;
    sigset_t unblocked;
    int status;
    apr_status_t rv = mdl_fork(&process, p, &unblocked);

    if (rv == APR_INCHILD) {
        schema_live(service, s, &unblocked);
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
    return APR_PROC_CHECK_EXIT(why) && status < RESULTS ? status : SCHEMA_FAILED;
}

int mdl_schema_prepare(const mdl_service_t *service, server_rec *s, int *has_storage, apr_pool_t *p)
{
    /* The child logs the other results. */
    static const char *const sentences[RESULTS] = {
        [SCHEMA_OLD] = "MDL0336: the database's schema is older than this module: run "
                       "\"downloadsctl migrate\", or set DownloadsMigrate On",
        [SCHEMA_OTHER] = "MDL0354: the database's schema " MDL_SCHEMA_OTHER,
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
    int status = schema_run_child(service, s, p);

    *has_storage = status != STORAGE_OTHER;
    if (sentences[status] != NULL) {
        schema_say(s, status, sentences[status]);
    }
    if (schema_refuses(status)) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    *schema_served() |= status == SCHEMA_CURRENT;
    return OK;
}
