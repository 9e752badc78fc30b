#include "ctl/check.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <apr_lib.h>
#include <apr_signal.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/version.h"
#include "core/health/objects.h"
#include "core/health/pgsql.h"
#include "core/health/worker.h"
#include "ctl/storage.h"
#include "ctl/templates.h"

/* Like mdl_health_fn (core/health/health.h). */
typedef int check_fn(mdl_ctl_t *ctl, const char **message);

/* Reads from the database once, because an unresponsive host takes seconds each time.  The
   database's own check reports errors. */
static void health_begin(mdl_ctl_t *ctl)
{
    const mdl_httpd_report_t *report = &ctl->report;
    const char *why;
    int version;
    int has_database = ctl->no_owner == NULL && ctl->settings->db_driver != NULL &&
                       ctl->settings->db_params != NULL &&
                       mdl_ctl_check_schema(ctl, &version, &why) == MDL_EXIT_DONE;

    ctl->health = (mdl_health_t){.p = ctl->p,
                                 .settings = ctl->settings,
                                 .secret = ctl->secret,
                                 .db = has_database ? ctl->db : NULL,
                                 .warnings = ctl->warnings,
                                 .pid_file = report->pid_file,
                                 .httpd_runs = report->pid_file != NULL && !report->is_stopped};
}

static int check_version(mdl_ctl_t *ctl, const char **message)
{
    *message = mdl_build_name();
    return ctl->health.db == NULL || mdl_health_build(&ctl->health, message);
}

static int check_settings(mdl_ctl_t *ctl, const char **message)
{
    *message = ctl->problems->nelts ? apr_array_pstrcat(ctl->p, ctl->problems, ' ') : ctl->file;
    return ctl->problems->nelts == 0;
}

/* httpd rejects directives of modules that are not loaded. */
static const char *missing_module_hint(const char *message)
{
    if (strstr(message, "Invalid command 'DBD") != NULL) {
        return "  mod_dbd is not loaded (Debian: a2enmod dbd).";
    }
    if (strstr(message, "Invalid command 'Downloads") != NULL) {
        return "  mod_downloads is not loaded (Debian: a2enmod downloads).";
    }
    return "";
}

static int check_httpd(mdl_ctl_t *ctl, const char **message)
{
    const mdl_httpd_report_t *report = &ctl->report;
    const char *command = ctl->httpd != NULL ? ctl->httpd : mdl_httpd_command();

    if (!report->reads_file && ctl->file_given && ctl->httpd == NULL) {
        *message = apr_psprintf(ctl->p, "not asked, since %s does not read this file (see --httpd)",
                                command);
        return 1;
    }
    for (int i = 0; i < report->warnings->nelts; i++) {
        mdl_health_warn(&ctl->health, APR_ARRAY_IDX(report->warnings, i, const char *));
    }
    if (!report->would_start) {
        *message = apr_psprintf(ctl->p, "httpd would not start.  %s -t says: %s%s%s", command,
                                report->output, missing_module_hint(report->output),
                                report->as_root ? ""
                                                : "  (This may be wrong: only root can read "
                                                  "all of its files.)");
        return 0;
    }
    if (!report->reads_file) {
        *message = apr_psprintf(
            ctl->p,
            "%s does not read %s: enable the module (Debian: a2enmod downloads), "
            "or have httpd's configuration Include the file.",
            command, ctl->file);
        return 0;
    }
    if (report->is_stopped) {
        *message = apr_psprintf(
            ctl->p,
            "httpd does not run: no process has the pid in %s.  Start it "
            "(Debian: systemctl start apache2); if it ended by itself, its error "
            "log says why.",
            report->pid_file);
        return 0;
    }
    *message = apr_pstrcat(ctl->p, command, " -t", NULL);
    return 1;
}

static int check_secret(mdl_ctl_t *ctl, const char **message)
{
    *message = ctl->no_secret;
    return ctl->no_secret == NULL && mdl_health_secret(&ctl->health, message);
}

/* Whether the process is still root, in which case the check would leave files owned by root. */
static int root_is_kept(const mdl_ctl_t *ctl, const char **message)
{
    if (ctl->no_owner != NULL) {
        *message = ctl->settings->storage.folder != NULL
                       ? "Not tried as root: correct the storage folder first."
                       : MDL_SETTINGS_FIRST;
    }
    return ctl->no_owner != NULL;
}

static int check_database(mdl_ctl_t *ctl, const char **message)
{
    const char *driver = ctl->settings->db_driver;
    const char *params = ctl->settings->db_params;
    const char *folder;
    int version;

    if (driver == NULL || params == NULL) {
        *message = MDL_SETTINGS_FIRST;
        return 0;
    }
    if (strcmp(driver, "sqlite3") == 0 && strchr(params, '/') != NULL) {
        folder = apr_pstrmemdup(ctl->p, params, (apr_size_t)(strrchr(params, '/') + 1 - params));
        if (faccessat(AT_FDCWD, folder, R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
            *message = apr_psprintf(
                ctl->p,
                "SQLite creates files beside the database, but the folder %s can't "
                "be written to: create it, and give it to the user that httpd runs "
                "as.",
                folder);
            return 0;
        }
    }
    /* Behind a pooler in transaction mode anything may fail, also the look at the schema. */
    if (ctl->db != NULL && !mdl_health_sessions(&ctl->health, ctl->db, message)) {
        return 0;
    }
    if (mdl_ctl_check_schema(ctl, &version, message) != MDL_EXIT_DONE) {
        return 0;
    }
    ctl->health.db = ctl->db;
    if (!mdl_health_database(&ctl->health, message)) {
        return 0;
    }
    *message = apr_pstrcat(ctl->p, *message, mdl_health_connections(&ctl->health), NULL);
    return 1;
}

static int check_storage(mdl_ctl_t *ctl, const char **message)
{
    const mdl_storage_config_t *storage = &ctl->settings->storage;

    *message = storage->folder == NULL && storage->objects.url == NULL ? MDL_SETTINGS_FIRST
                                                                       : ctl->no_owner;
    return *message == NULL && mdl_health_storage(&ctl->health, message);
}

static int check_worker(mdl_ctl_t *ctl, const char **message)
{
    *message = "Not tried: the database comes first.";
    return ctl->health.db != NULL && mdl_health_worker(&ctl->health, message);
}

static int check_templates(mdl_ctl_t *ctl, const char **message)
{
    const char *folder = ctl->settings->templates;
    apr_array_header_t *problems = apr_array_make(ctl->p, 5, sizeof(const char *));

    if (folder == NULL) {
        *message = MDL_SETTINGS_FIRST;
        return 0;
    }
    mdl_settings_check_templates(ctl->settings, problems, ctl->p);
    mdl_ctl_templates_kept(ctl->settings, problems, ctl->warnings, ctl->p);
    *message = problems->nelts ? apr_array_pstrcat(ctl->p, problems, ' ') : folder;
    return problems->nelts == 0;
}

static const struct {
    const char *name;
    check_fn *check;
    mdl_health_fn *health; /* instead of check */
    int no_root;           /* not to be run as root, who would own the files that it leaves */
    int objects;           /* only with DownloadsObjectStore */
} checks[] = {
    {.name = "version", .check = check_version},
    {.name = "settings", .check = check_settings},
    {.name = "httpd", .check = check_httpd},
    {.name = "secret", .check = check_secret},
    {.name = "database", .check = check_database, .no_root = 1},
    {.name = "storage", .check = check_storage},
    {.name = "objects", .health = mdl_health_objects, .objects = 1},
    {.name = "files", .check = mdl_ctl_check_files},
    {.name = "templates", .check = check_templates},
    {.name = "imports", .health = mdl_health_imports},
    {.name = "mail", .health = mdl_health_mail, .no_root = 1},
    {.name = "bounces", .health = mdl_health_bounces, .no_root = 1},
    {.name = "worker", .check = check_worker, .no_root = 1},
};

static int check_run(mdl_ctl_t *ctl, apr_size_t i, const char **message)
{
    if (checks[i].no_root && root_is_kept(ctl, message)) {
        return 0;
    }
    return checks[i].check != NULL ? checks[i].check(ctl, message)
                                   : checks[i].health(&ctl->health, message);
}

static void check_print(mdl_ctl_t *ctl, mdl_json_t *list, const char *name, int good,
                        const char *message)
{
    mdl_json_t *entry;

    if (good && ctl->quiet) {
        return;
    }
    entry = mdl_json_add_object(list, NULL);
    mdl_printer_line(ctl->output, "%-11s%s%s", name, message, good ? ": ok" : "");
    mdl_json_add_string(entry, "name", name);
    mdl_json_add_bool(entry, "ok", good);
    mdl_json_add_string(entry, "message", message);
}

int mdl_ctl_check(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p);
    mdl_json_t *list = mdl_json_add_array(document, "checks");
    mdl_json_t *warnings;
    int problems = 0;

    apr_signal(SIGPIPE, SIG_IGN); /* a mail server may close the connection */
    health_begin(ctl);
    for (apr_size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        const char *message = NULL;
        int good;

        if (checks[i].objects && ctl->settings->storage.objects.url == NULL) {
            continue;
        }
        good = check_run(ctl, i, &message);
        problems += !good;
        check_print(ctl, list, checks[i].name, good, message);
    }
    warnings = mdl_json_add_array(document, "warnings");
    for (int i = 0; i < ctl->warnings->nelts; i++) {
        const char *sentence = APR_ARRAY_IDX(ctl->warnings, i, const char *);

        mdl_printer_line(ctl->output, "%-11s%s", "warning", sentence);
        mdl_json_add_string(warnings, NULL, sentence);
    }
    mdl_json_add_bool(document, "ok", problems == 0);
    mdl_printer_document(ctl->output, document);
    return problems ? MDL_EXIT_PROBLEM : MDL_EXIT_DONE;
}
