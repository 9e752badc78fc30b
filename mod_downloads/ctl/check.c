#include "ctl/check.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <apr_lib.h>
#include <apr_signal.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/client.h"
#include "base/mail/mailbox.h"
#include "base/mail/mailer.h"
#include "base/version.h"
#include "core/catalog/storage_identity.h"
#include "core/job.h"
#include "core/node.h"
#include "core/order/email.h"
#include "core/shop/secret.h"
#include "ctl/nodes.h"
#include "ctl/storage.h"
#include "ctl/templates.h"
#include "db/migrate.h"
#include "storage/storage.h"

#define MAX_WAIT     apr_time_from_sec(60) /* a due job that waits longer shows that no worker runs */
#define MAX_SEARCHED 1000
#define TRIED        20 /* emails that are looked at */
#define REFUSED_MIN  5  /* of them; fewer may all have a wrong address */

/* A check returns whether all is well.  *message gets a sentence on what to do, or, if all is well,
   a remark. */
typedef int check_fn(mdl_ctl_t *ctl, const char **message);

/* httpd and the settings may give the same warning. */
static void warning_add(mdl_ctl_t *ctl, const char *sentence)
{
    for (int i = 0; i < ctl->warnings->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(ctl->warnings, i, const char *), sentence) == 0) {
            return;
        }
    }
    APR_ARRAY_PUSH(ctl->warnings, const char *) = sentence;
}

/* Whether the database can be asked at all; its own check says why it can't.  Found out once: a
   host that is silent takes seconds each time. */
static int has_database(mdl_ctl_t *ctl)
{
    static enum { NOT_TRIED, YES, NO } has;
    const char *why;
    int version;

    if (has == NOT_TRIED) {
        has = ctl->no_owner == NULL && ctl->settings->db_driver != NULL &&
                      ctl->settings->db_params != NULL &&
                      mdl_ctl_check_schema(ctl, &version, &why) == MDL_EXIT_DONE
                  ? YES
                  : NO;
    }
    return has == YES;
}

static int check_version(mdl_ctl_t *ctl, const char **message)
{
    *message = mdl_build_name();
    return !has_database(ctl) || mdl_ctl_nodes_are_current(ctl, message);
}

static int check_settings(mdl_ctl_t *ctl, const char **message)
{
    *message = ctl->problems->nelts ? apr_array_pstrcat(ctl->p, ctl->problems, ' ') : ctl->file;
    return ctl->problems->nelts == 0;
}

/* httpd knows no directive of a module that is not loaded. */
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
        warning_add(ctl, APR_ARRAY_IDX(report->warnings, i, const char *));
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

MDL_EFFECT(mdl_secret_signed, mdl_secret_signed_t *)

static int check_secret(mdl_ctl_t *ctl, const char **message)
{
    mdl_secret_signed_t of = {.secret = ctl->secret};
    const char *trouble;

    if (ctl->no_secret != NULL) {
        *message = ctl->no_secret;
        return 0;
    }
    if (has_database(ctl) &&
        mdl_db_read(ctl->db, mdl_secret_signed_effect, &of, ctl->p) == APR_SUCCESS &&
        (trouble = mdl_secret_trouble(&of, ctl->p)) != NULL) {
        *message = apr_psprintf(ctl->p, "%c%s.", apr_toupper(*trouble), trouble + 1);
        return 0;
    }
    *message = apr_array_pstrcat(ctl->p, ctl->settings->secret_files, ' ');
    return 1;
}

/* Returns whether the process still is root: then the check would leave files behind that belong to
   root. */
static int root_is_kept(const mdl_ctl_t *ctl, const char **message)
{
    if (ctl->no_owner != NULL) {
        *message = ctl->settings->storage != NULL
                       ? "Not tried as root: correct the storage folder first."
                       : MDL_SETTINGS_FIRST;
    }
    return ctl->no_owner != NULL;
}

static apr_status_t try_write_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    (void)arg;
    return mdl_node_try_write(db, p);
}

static int check_database(mdl_ctl_t *ctl, const char **message)
{
    const char *driver = ctl->settings->db_driver;
    const char *params = ctl->settings->db_params;
    const char *folder;
    int version;
    apr_status_t rv;

    if (root_is_kept(ctl, message)) {
        return 0;
    }
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
    if (mdl_ctl_check_schema(ctl, &version, message) != MDL_EXIT_DONE) {
        return 0;
    }
    rv = mdl_db_write(ctl->db, try_write_effect, NULL, ctl->p);
    *message = rv != APR_SUCCESS ? mdl_ctl_database_error(ctl, rv)
                                 : apr_psprintf(ctl->p, "%s, schema %s", driver,
                                                mdl_migrate_maker(ctl->db, version, ctl->p));
    return rv == APR_SUCCESS;
}

/* Whether the folder is the database's, as far as that can be asked. */
static int storage_belongs(mdl_ctl_t *ctl, const char **message)
{
    const char *why = "The database does not say which storage folder belongs with it.";
    int version;
    apr_status_t rv;

    if (ctl->settings->db_driver == NULL || ctl->settings->db_params == NULL ||
        mdl_ctl_check_schema(ctl, &version, &why) != MDL_EXIT_DONE) {
        return 1;
    }
    rv = mdl_storage_belongs(ctl->db, ctl->settings->storage, 0, &why, ctl->p);
    if (rv != APR_SUCCESS) {
        *message = why;
    }
    return rv == APR_SUCCESS;
}

static int check_storage(mdl_ctl_t *ctl, const char **message)
{
    const char *root = ctl->settings->storage;
    mdl_storage_t *storage;
    apr_status_t rv;
    char text[120];

    *message = root == NULL ? MDL_SETTINGS_FIRST : ctl->no_owner != NULL ? ctl->no_owner : root;
    if (root == NULL || ctl->no_owner != NULL) {
        return 0;
    }
    if (!storage_belongs(ctl, message)) {
        return 0;
    }
    rv = mdl_storage_open(&storage, root, ctl->settings->storage_reserve, ctl->p);
    if (rv == APR_SUCCESS) {
        rv = mdl_storage_check(storage, ctl->p);
    }
    /* The folders in it may be writable while the folder itself is not, which httpd refuses. */
    if (rv == APR_SUCCESS && faccessat(AT_FDCWD, root, R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        rv = APR_EACCES;
    }
    if (APR_STATUS_IS_ENOSPC(rv)) {
        *message = apr_psprintf(ctl->p,
                                "The disk that holds %s is full, or has less than "
                                "DownloadsStorageReserve left: free some "
                                "space, or enlarge it.",
                                root);
    } else if (rv != APR_SUCCESS) {
        *message = apr_psprintf(ctl->p,
                                "Files can't be stored in %s (%s): create the folder on one file "
                                "system, give it and its contents to the user that httpd runs as, "
                                "and run this as root or as that user.",
                                root, apr_strerror(rv, text, sizeof text));
    }
    return rv == APR_SUCCESS;
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

MDL_EFFECT(mdl_emails_tried, mdl_emails_tried_t *)

/* A server may greet everybody, and take nothing from us. */
static int mail_is_refused(mdl_ctl_t *ctl, const char **message)
{
    mdl_emails_tried_t tried = {.limit = TRIED};

    if (!has_database(ctl) ||
        mdl_db_read(ctl->db, mdl_emails_tried_effect, &tried, ctl->p) != APR_SUCCESS ||
        tried.count < REFUSED_MIN || tried.sent > 0 ||
        tried.newest_at < apr_time_now() - apr_time_from_sec(86400)) {
        return 0;
    }
    *message = apr_psprintf(
        ctl->p,
        "None of the %d newest emails was taken; the last was refused with: %s  "
        "Try \"downloadsctl mail test ADDRESS\", correct "
        "DownloadsMailTransport, DownloadsMailFrom or the mail server, and then "
        "retry the failed jobs (\"downloadsctl job list --status failed\").",
        tried.count, tried.error != NULL ? tried.error : "(no reason).");
    return 1;
}

static int check_mail(mdl_ctl_t *ctl, const char **message)
{
    const mdl_mail_config_t *config = &ctl->settings->mail;
    mdl_mailer_t *mailer;
    apr_size_t length;
    apr_status_t rv;

    if (root_is_kept(ctl, message)) {
        return 0;
    }
    if (config->transport == NULL || ctl->settings->mail_from == NULL) {
        *message = MDL_SETTINGS_FIRST;
        return 0;
    }
    apr_signal(SIGPIPE, SIG_IGN);
    *message = "The mailer can't be set up.";
    rv = mdl_http_global_init(ctl->p);
    if (rv == APR_SUCCESS) {
        rv = mdl_mailer_create(&mailer, config, ctl->p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_mailer_check(mailer, ctl->settings->mail_from, message, ctl->p);
    }
    if (rv != APR_SUCCESS) {
        length = strlen(*message);
        *message = apr_psprintf(
            ctl->p, "%s%s  Correct DownloadsMailTransport (%s)%s, or what it names.", *message,
            length && (*message)[length - 1] != '.' ? "." : "", config->transport,
            strncmp(config->transport, "smtp://", 7) == 0 ? ", DownloadsMailTLS" : "");
        return 0;
    }
    if (mail_is_refused(ctl, message)) {
        return 0;
    }
    *message = config->transport;
    return 1;
}

static int check_bounces(mdl_ctl_t *ctl, const char **message)
{
    const char *place = ctl->settings->mail_bounces;

    if (root_is_kept(ctl, message)) {
        return 0;
    }
    if (place == NULL) {
        *message = "mail that comes back is not read";
        return 1;
    }
    if (mdl_mailbox_check(mdl_mailbox_create(place, ctl->p), message, ctl->p) != APR_SUCCESS) {
        *message = apr_psprintf(ctl->p,
                                "%s  Have the mail server deliver there (a Maildir's new/ and cur/ "
                                "can be made by hand), and let httpd's user read and write it.",
                                *message);
        return 0;
    }
    *message = place;
    return 1;
}

typedef struct {
    mdl_job_look_t look;
    mdl_job_list_t newest;
} queue_t;

static apr_status_t queue_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    queue_t *queue = arg;
    apr_status_t rv = mdl_job_list(db, p, &queue->newest);

    return rv == APR_SUCCESS ? mdl_job_look(db, p, &queue->look) : rv;
}

/* Whether a worker runs a job of the lane: then the others wait for a slot, not for a worker. */
static int lane_is_busy(const queue_t *queue, mdl_job_lane_t lane, apr_time_t renewed)
{
    for (int i = 0; i < queue->newest.jobs->nelts; i++) {
        const mdl_job_t *job = APR_ARRAY_IDX(queue->newest.jobs, i, const mdl_job_t *);

        if (job->lane == lane && job->status == MDL_JOB_RUNNING && job->updated_at > renewed) {
            return 1;
        }
    }
    return 0;
}

static int check_worker(mdl_ctl_t *ctl, const char **message)
{
    apr_time_t now = apr_time_now();
    queue_t queue = {.look = {.until = now}, .newest = {.limit = MAX_SEARCHED}};
    apr_status_t rv;

    if (root_is_kept(ctl, message)) {
        return 0;
    }
    if (!has_database(ctl)) {
        *message = "Not tried: the database comes first.";
        return 0;
    }
    if (!mdl_ctl_nodes_live(ctl, message)) {
        return 0;
    }
    rv = mdl_db_read(ctl->db, queue_read, &queue, ctl->p);
    if (rv != APR_SUCCESS) {
        *message = mdl_ctl_database_error(ctl, rv);
        return 0;
    }
    for (mdl_job_lane_t i = 0; i < MDL_LANES; i++) {
        apr_time_t due_at = queue.look.due_at[i];

        if (due_at != 0 && now - due_at > MAX_WAIT &&
            !lane_is_busy(&queue, i, now - ctl->settings->lease_time)) {
            *message = apr_psprintf(
                ctl->p,
                "No background process seems to take jobs: the oldest of lane %s "
                "has waited for %" APR_INT64_T_FMT " seconds.  Start httpd with "
                "DownloadsWorker On, and see its error log.",
                mdl_job_lane_names[i], apr_time_sec(now - due_at));
            return 0;
        }
    }
    *message = "no job waits for a background process";
    return 1;
}

/* Uploads alone will do. */
static int check_imports(mdl_ctl_t *ctl, const char **message)
{
    const mdl_settings_t *settings = ctl->settings;
    int hosts = settings->ingest.hosts->nelts;

    if (hosts == 0 && settings->upload_url == NULL) {
        *message = "No file can get in: DownloadsIngestAllowHost names no host to import from, and "
                   "without DownloadsUploadURL nothing can be uploaded.  Set one of them, then "
                   "restart httpd.";
        return 0;
    }
    if (hosts == 0) {
        warning_add(ctl, "DownloadsIngestAllowHost names no host, so that every import is refused "
                         "(422) and files come by upload alone: name the hosts to import from.");
    }
    *message = apr_psprintf(ctl->p, "from %d host%s%s", hosts, hosts == 1 ? "" : "s",
                            settings->upload_url != NULL ? ", and by upload" : "");
    return 1;
}

static const struct {
    const char *name;
    check_fn *check;
} checks[] = {
    {"version", check_version},     {"settings", check_settings},   {"httpd", check_httpd},
    {"secret", check_secret},       {"database", check_database},   {"storage", check_storage},
    {"files", mdl_ctl_check_files}, {"templates", check_templates}, {"imports", check_imports},
    {"mail", check_mail},           {"bounces", check_bounces},     {"worker", check_worker},
};

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

    for (apr_size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        const char *message = NULL;
        int good = checks[i].check(ctl, &message);

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
