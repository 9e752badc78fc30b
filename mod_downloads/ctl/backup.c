#include "ctl/backup.h"

#include <signal.h>
#include <stddef.h>

#include <apr_file_info.h>
#include <apr_strings.h>

#include "core/catalog/backup.h"
#include "ctl/storage.h"

#define LISTED 1000 /* faulty files that --json lists */

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
    (void)signal;
    stopped = 1;
}

void mdl_ctl_await_stop(void)
{
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int mdl_ctl_stopped(void)
{
    return stopped;
}

void mdl_ctl_fault_found(void *faults, const mdl_blob_t *blob, mdl_blob_fault_t fault,
                         apr_status_t rv)
{
    mdl_ctl_faults_t *of = faults;
    const char *place = mdl_storage_place(of->storage, blob, of->ctl->p);
    const char *name = mdl_blob_fault_names[fault];
    char text[120];
    mdl_json_t *entry;

    mdl_ctl_progress_clear(&of->progress);
    mdl_printer_line(of->ctl->output, "%s: %s%s%s", place, name, rv != APR_SUCCESS ? ": " : "",
                     rv != APR_SUCCESS ? apr_strerror(rv, text, sizeof text) : "");
    if (mdl_json_length(of->faults) < LISTED) {
        entry = mdl_json_add_object(of->faults, NULL);
        mdl_json_add_string(entry, "sha256", blob->sha256);
        mdl_json_add_string(entry, "place", place);
        mdl_json_add_string(entry, "fault", name);
    }
}

static apr_status_t audit_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    (void)db, (void)p, (void)arg;
    return APR_SUCCESS;
}

static int backup_fail(mdl_ctl_t *ctl, const mdl_backup_t *backup, apr_status_t rv)
{
    return backup->why != NULL
               ? mdl_ctl_fail(ctl, APR_STATUS_IS_EAGAIN(rv) ? MDL_EXIT_REFUSED : MDL_EXIT_PROBLEM,
                              "backup_failed", backup->why)
               : mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable",
                              mdl_ctl_database_error(ctl, rv));
}

static int backup_report(mdl_ctl_t *ctl, const mdl_backup_t *backup, mdl_json_t *document)
{
    const mdl_backup_set_t *set = &backup->set;
    const mdl_backup_files_t *files = &backup->files;

    mdl_json_add_string(document, "backup", apr_pstrcat(ctl->p, set->folder, "/", set->name, NULL));
    mdl_json_add_int(document, "files", set->files);
    mdl_json_add_int(document, "bytes", set->bytes);
    mdl_json_add_int(document, "copied", files->copied);
    mdl_json_add_int(document, "copied_bytes", files->copied_bytes);
    mdl_json_add_int(document, "objects", set->objects);
    mdl_json_add_int(document, "faulty", set->faults);
    mdl_json_add_string(document, "secret", ctl->secret_file);
    mdl_printer_line(ctl->output,
                     "%s/%s: %" APR_INT64_T_FMT " files of %" APR_INT64_T_FMT
                     " bytes, of which %" APR_INT64_T_FMT " (%" APR_INT64_T_FMT
                     " bytes) are new; %" APR_INT64_T_FMT " faulty",
                     set->folder, set->name, set->files, set->bytes, files->copied,
                     files->copied_bytes, set->faults);
    if (set->objects > 0) {
        mdl_printer_line(ctl->output,
                         "%" APR_INT64_T_FMT " files are in the object store, which has to keep "
                         "the objects that are listed in %s.",
                         set->objects, mdl_backup_path(set, "files", ctl->p));
    }
    if (ctl->secret_file != NULL) {
        mdl_printer_line(ctl->output, "%s has the secret: keep it apart from the backups.",
                         ctl->secret_file);
    }
    mdl_printer_document(ctl->output, document);
    return set->faults == 0 ? MDL_EXIT_DONE : MDL_EXIT_PROBLEM;
}

/* The database comes before the list of files, which has their number. */
static void backup_step(void *baton, apr_int64_t done, apr_int64_t total)
{
    mdl_ctl_faults_t *of = baton;

    if (of->progress.what == NULL) {
        mdl_ctl_progress_clear(&of->progress);
        of->progress = mdl_ctl_progress_begin(of->ctl, "files", total);
    }
    mdl_ctl_progress_tell(&of->progress, done);
}

int mdl_ctl_backup(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p);
    mdl_ctl_faults_t faults = {.ctl = ctl, .faults = mdl_json_add_array(document, "faults")};
    char *folder = NULL;
    mdl_backup_t backup = {.config = &ctl->settings->storage,
                           .params = ctl->settings->db_params,
                           .user = ctl->audit.user,
                           .keep = ctl->keep,
                           .stopped = mdl_ctl_stopped,
                           .found = mdl_ctl_fault_found,
                           .step = backup_step,
                           .baton = &faults};
    const char *why = NULL;
    mdl_storage_t *storage;
    int failed;
    apr_status_t rv;

    if (ctl->secret_fault != NULL) {
        return mdl_ctl_fail(ctl, MDL_EXIT_REFUSED, "secret_not_copied", ctl->secret_fault);
    }
    if ((failed = mdl_ctl_storage_open(ctl, 0, &storage, &why))) {
        return mdl_ctl_storage_fail(ctl, failed, why);
    }
    apr_filepath_merge(&folder, NULL, ctl->arguments[0], APR_FILEPATH_TRUENAME, ctl->p);
    backup.folder = folder != NULL ? folder : ctl->arguments[0];
    backup.storage = faults.storage = storage;
    if (ctl->secret_file != NULL) {
        ctl->audit.detail = apr_pstrcat(ctl->p, "the secret: ", ctl->secret_file, NULL);
    }
    if ((failed = mdl_ctl_settle(ctl, audit_effect, NULL, NULL))) {
        return failed;
    }
    mdl_ctl_await_stop();
    faults.progress = mdl_ctl_progress_begin(ctl, NULL, 0);
    mdl_ctl_progress_say(&faults.progress, "The database");
    rv = mdl_backup_make(ctl->db, &backup, ctl->p);
    mdl_ctl_progress_clear(&faults.progress);
    return rv == APR_SUCCESS ? backup_report(ctl, &backup, document)
                             : backup_fail(ctl, &backup, rv);
}
