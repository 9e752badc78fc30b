#include "ctl/command.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/text/utf8.h"
#include "core/shop/member.h"
#include "core/shop/shop.h"
#include "core/write.h"
#include "ctl/owner.h"
#include "ctl/secret_copy.h"
#include "db/migrate.h"

/* Processes read the key cache's epoch every 250 ms; the rest allows for a slow database. */
#define EPOCH_WAIT apr_time_from_sec(1)

static void settings_load(mdl_ctl_t *ctl)
{
    apr_array_header_t *missing = apr_array_make(ctl->p, 4, sizeof(const char *));
    apr_finfo_t info;

    ctl->settings = mdl_settings_create(ctl->p);
    ctl->problems = apr_array_make(ctl->p, 4, sizeof(const char *));
    ctl->warnings = apr_array_make(ctl->p, 4, sizeof(const char *));
    mdl_settings_read(ctl->settings, ctl->file, ctl->problems, ctl->p);
    mdl_settings_check(ctl->settings, missing, ctl->p);
    mdl_settings_warn(ctl->settings, ctl->warnings, ctl->p);
    if (ctl->problems->nelts == 0) {
        ctl->problems = missing;
    } else if (!ctl->file_given &&
               APR_STATUS_IS_ENOENT(apr_stat(&info, ctl->file, APR_FINFO_TYPE, ctl->p))) {
        APR_ARRAY_PUSH(ctl->problems, const char *) =
            "Enable the module (Debian: a2enmod downloads), or name its configuration with -f.";
    }
}

void mdl_ctl_configure(mdl_ctl_t *ctl)
{
    const mdl_storage_config_t *storage;

    settings_load(ctl);
    storage = &ctl->settings->storage;
    if (ctl->settings->secret_files->nelts == 0) {
        ctl->no_secret = MDL_SETTINGS_FIRST;
    } else if (mdl_secret_read(&ctl->secret, ctl->settings->secret_files, &ctl->no_secret,
                               ctl->p) == APR_SUCCESS) {
        ctl->no_secret = NULL;
    }
    /* As root still: httpd's user must not have the copy. */
    if (ctl->secret_file != NULL) {
        ctl->secret_fault = ctl->secret == NULL ? ctl->no_secret
                                                : mdl_ctl_secret_copy(ctl->secret, ctl->secret_file,
                                                                      ctl->arguments[0], ctl->p);
    }
    /* SQLite's files contain customers' addresses, which other users must not read. */
    umask(umask(0) | S_IRWXO | S_IWGRP);
    if (storage->folder == NULL && storage->objects.url != NULL && geteuid() == 0) {
        ctl->no_owner = mdl_owner_become_user(
            mdl_httpd_user(ctl->httpd != NULL ? ctl->httpd : mdl_httpd_command(), ctl->p), ctl->p);
    } else {
        ctl->no_owner = mdl_owner_become(storage->folder, ctl->p);
    }
}

int mdl_ctl_fail(mdl_ctl_t *ctl, int exit_code, const char *code, const char *message)
{
    mdl_printer_error(ctl->output, code, message);
    return exit_code;
}

const char *mdl_ctl_database_error(const mdl_ctl_t *ctl, apr_status_t rv)
{
    const char *too_new = rv == MDL_DB_ENEWER ? mdl_migrate_too_new(ctl->db, ctl->p) : NULL;

    if (too_new != NULL) {
        return apr_psprintf(ctl->p,
                            "The database's schema %s: use the downloadsctl of the newer "
                            "installation.",
                            too_new);
    }
    return mdl_health_database_error(rv, ctl->db != NULL ? mdl_db_error(ctl->db) : NULL, ctl->p);
}

static const char *user_name(uid_t uid, apr_pool_t *p)
{
    const struct passwd *user = getpwuid(uid);

    return user != NULL ? apr_pstrdup(p, user->pw_name) : apr_psprintf(p, "%d", (int)uid);
}

const char *mdl_ctl_user(apr_pool_t *p)
{
    const char *sudo = getenv("SUDO_USER");

    return sudo != NULL && mdl_utf8_valid(sudo) && mdl_utf8_is_name(sudo, MDL_MEMBER_USER_MAX)
               ? sudo
               : user_name(getuid(), p);
}

/* SQLite's own message for an unwritable file names neither the file nor a remedy. */
static const char *sqlite_why_unwritable(const mdl_ctl_t *ctl)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-writer"};
    const char *user = user_name(geteuid(), ctl->p);
    struct stat info;

    for (apr_size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const char *path = apr_pstrcat(ctl->p, ctl->settings->db_params, suffixes[i], NULL);

        if (stat(path, &info) != 0 || faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0 ||
            errno != EACCES) {
            continue;
        }
        return info.st_uid == geteuid()
                   ? apr_psprintf(ctl->p, "%s can't be written to by its owner: chmod u+rw %s.",
                                  path, path)
                   : apr_psprintf(ctl->p,
                                  "%s belongs to %s, and %s can't write to it: chown %s %s.", path,
                                  user_name(info.st_uid, ctl->p), user, user, path);
    }
    return NULL;
}

int mdl_ctl_connect(mdl_ctl_t *ctl, const char **why)
{
    const mdl_settings_t *settings = ctl->settings;
    const char *error;
    apr_status_t rv;

    if (ctl->db != NULL) {
        return MDL_EXIT_DONE;
    }
    if (strcmp(settings->db_driver, "sqlite3") == 0 &&
        (error = sqlite_why_unwritable(ctl)) != NULL) {
        *why = error;
        return MDL_EXIT_DATABASE;
    }
    rv = mdl_db_open(&ctl->db, settings->db_driver, settings->db_params, &error, ctl->p);
    if (rv == APR_SUCCESS) {
        return MDL_EXIT_DONE;
    }
    ctl->db = NULL;
    *why = rv == MDL_DB_EGONE ? mdl_health_database_error(rv, error, ctl->p) : error;
    return MDL_EXIT_DATABASE;
}

/* Whether SQLite's file is missing: only migrate may create it. */
static int sqlite_is_absent(const mdl_ctl_t *ctl)
{
    const char *path = ctl->settings->db_params;
    const char *slash = strrchr(path, '/');
    apr_finfo_t info;

    return strcmp(ctl->settings->db_driver, "sqlite3") == 0 && slash != NULL &&
           APR_STATUS_IS_ENOENT(apr_stat(&info, path, APR_FINFO_TYPE, ctl->p)) &&
           apr_stat(&info, apr_pstrmemdup(ctl->p, path, (apr_size_t)(slash + 1 - path)),
                    APR_FINFO_TYPE, ctl->p) == APR_SUCCESS;
}

const char *mdl_ctl_runs_with(apr_pool_t *p)
{
    return apr_psprintf(p,
                        "  Nodes whose build knows version %d or newer go on beside it; others "
                        "answer 503.",
                        mdl_migrate_runs_with());
}

int mdl_ctl_read_version(mdl_ctl_t *ctl, int *version, const char **why)
{
    apr_status_t rv;

    *version = 0;
    if (sqlite_is_absent(ctl)) {
        return MDL_EXIT_DONE;
    }
    if (mdl_ctl_connect(ctl, why) != MDL_EXIT_DONE) {
        return MDL_EXIT_DATABASE;
    }
    rv = mdl_migrate_version(ctl->db, version, ctl->p);
    if (rv != APR_SUCCESS) {
        *why = mdl_ctl_database_error(ctl, rv);
    }
    return rv == APR_SUCCESS ? MDL_EXIT_DONE : MDL_EXIT_DATABASE;
}

int mdl_ctl_check_schema(mdl_ctl_t *ctl, int *version, const char **why)
{
    int latest = mdl_migrate_latest();
    int failed = mdl_ctl_read_version(ctl, version, why);

    if (failed) {
        return failed;
    }
    if (*version >= latest) {
        mdl_db_set_check(ctl->db, mdl_migrate_check);
        return MDL_EXIT_DONE;
    }
    *why = apr_psprintf(ctl->p,
                        "The schema is at version %d and this program needs %d: run "
                        "'downloadsctl migrate', then restart httpd.%s",
                        *version, latest, *version > 0 ? mdl_ctl_runs_with(ctl->p) : "");
    return MDL_EXIT_DATABASE;
}

static int effect_run(mdl_ctl_t *ctl, mdl_db_run_fn *how, mdl_effect_fn *effect, void *arg,
                      mdl_problem_t *problem)
{
    const char *why = NULL;
    int version;
    int failed = mdl_ctl_check_schema(ctl, &version, &why);
    apr_status_t rv;

    if (failed) {
        return mdl_ctl_fail(ctl, failed, "database_unavailable", why);
    }
    rv = how(ctl->db, effect, arg, ctl->p);
    if (rv == APR_SUCCESS) {
        return MDL_EXIT_DONE;
    }
    if (rv == MDL_EPROBLEM) {
        return mdl_ctl_fail(ctl, problem->status == 404 ? MDL_EXIT_ABSENT : MDL_EXIT_REFUSED,
                            problem->code, problem->message);
    }
    if (rv == MDL_DB_ECLOSED) {
        return mdl_ctl_fail(ctl, MDL_EXIT_REFUSED, "maintenance", mdl_ctl_database_error(ctl, rv));
    }
    return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable",
                        mdl_ctl_database_error(ctl, rv));
}

MDL_EFFECT(mdl_write, mdl_write_t *)

int mdl_ctl_write(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem)
{
    mdl_write_t write = {.effect = effect, .arg = arg, .audit = &ctl->audit, .problem = problem};

    return effect_run(ctl, mdl_db_write, mdl_write_effect, &write, problem);
}

int mdl_ctl_settle(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem)
{
    mdl_write_t write = {.effect = effect, .arg = arg, .audit = &ctl->audit, .problem = problem};

    return effect_run(ctl, mdl_db_settle, mdl_write_effect, &write, problem);
}

int mdl_ctl_write_on(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem)
{
    return effect_run(ctl, mdl_db_write, effect, arg, problem);
}

int mdl_ctl_read(mdl_ctl_t *ctl, mdl_effect_fn *effect, void *arg, mdl_problem_t *problem)
{
    return effect_run(ctl, mdl_db_read, effect, arg, problem);
}

apr_status_t mdl_ctl_check_shop(mdl_db_t *db, apr_int64_t shop_id, mdl_problem_t *problem,
                                apr_pool_t *p)
{
    mdl_shop_t *shop;
    apr_status_t rv = shop_id != 0 ? mdl_shop_find(db, shop_id, &shop, p) : APR_SUCCESS;

    return rv == APR_ENOENT ? mdl_problem_set(problem, 404, "not_found", "There is no such shop.")
                            : rv;
}

mdl_ctl_t mdl_ctl_step(const mdl_ctl_t *ctl, apr_pool_t *p)
{
    mdl_ctl_t step = *ctl;

    step.p = p;
    return step;
}

void mdl_ctl_await_key_caches(void)
{
    apr_sleep(EPOCH_WAIT);
}
