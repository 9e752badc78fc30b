#include "ctl/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_strings.h>

#include "base/clock.h"
#include "base/http/client.h"
#include "core/catalog/backup_files.h"
#include "core/catalog/storage_identity.h"
#include "core/order/restored.h"
#include "core/write.h"
#include "ctl/backup.h"
#include "ctl/storage.h"
#include "db/dump.h"
#include "db/migrate.h"

/* In the storage folder, until everything is restored.  The folder has no identity as long, so that
   httpd does not start on it. */
#define MARKER "restoring"

typedef struct {
    mdl_ctl_t *ctl;
    mdl_backup_set_t set;
    const char *folder; /* of the storage; NULL: none */
    const char *database;
    int is_sqlite;
    int resumed; /* a restoration of this backup was broken off */
    int loaded;  /* and had loaded the database, */
    int ended;   /* and told it so */
    mdl_ctl_faults_t faults;
    mdl_backup_files_t files;
    mdl_storage_verify_t verify;
    mdl_restored_t restored;
} restoring_t;

static int restore_fail(restoring_t *restoring, int exit_code, const char *why)
{
    return mdl_ctl_fail(restoring->ctl, exit_code, "restore_failed", why);
}

static int place_fail(restoring_t *restoring, const char *path, apr_status_t rv)
{
    char text[120];

    return restore_fail(restoring, MDL_EXIT_PROBLEM,
                        apr_psprintf(restoring->ctl->p, "%s can't be written to: %s.", path,
                                     apr_strerror(rv, text, sizeof text)));
}

static int database_fail(restoring_t *restoring, apr_status_t rv)
{
    return mdl_ctl_fail(restoring->ctl, MDL_EXIT_DATABASE, "database_unavailable",
                        mdl_ctl_database_error(restoring->ctl, rv));
}

static int exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* --- the places, which must be empty --- */

static const char *marker_path(const restoring_t *restoring)
{
    return apr_pstrcat(restoring->ctl->p, restoring->folder, "/" MARKER, NULL);
}

/* The name of the backup that was being restored; NULL: none was. */
static const char *marker_read(const restoring_t *restoring)
{
    char name[64] = "";
    FILE *file = fopen(marker_path(restoring), "re");
    int found = file != NULL && fgets(name, sizeof name, file) != NULL;

    if (file != NULL) {
        fclose(file);
    }
    name[strcspn(name, "\n")] = '\0';
    return found ? apr_pstrdup(restoring->ctl->p, name) : NULL;
}

static int marker_write(restoring_t *restoring)
{
    FILE *file = fopen(marker_path(restoring), "we");
    int written = file != NULL && fprintf(file, "%s\n", restoring->set.name) > 0;

    written = file != NULL && fflush(file) == 0 && fsync(fileno(file)) == 0 && written;
    if (file != NULL && fclose(file) != 0) {
        written = 0;
    }
    return written ? MDL_EXIT_DONE
                   : place_fail(restoring, restoring->folder, APR_FROM_OS_ERROR(errno));
}

/* Two restorations would remove each other's unfinished files.  The lock ends with the process;
   where a file system has none for folders, nothing is locked. */
static int folder_lock(restoring_t *restoring)
{
    int fd = restoring->folder != NULL ? open(restoring->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                       : -1;

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK
               ? restore_fail(restoring, MDL_EXIT_REFUSED,
                              apr_psprintf(restoring->ctl->p,
                                           "Another restoration into %s is under way.",
                                           restoring->folder))
               : MDL_EXIT_DONE;
}

static int folder_check(restoring_t *restoring)
{
    apr_pool_t *p = restoring->ctl->p;
    const char *marker;

    if (restoring->folder == NULL) {
        return restoring->set.files == 0
                   ? MDL_EXIT_DONE
                   : restore_fail(restoring, MDL_EXIT_CONFIGURATION,
                                  "DownloadsStorage is missing: the backup has files of a folder.");
    }
    marker = marker_read(restoring);
    restoring->resumed = marker != NULL && strcmp(marker, restoring->set.name) == 0;
    if (restoring->resumed) {
        return MDL_EXIT_DONE;
    }
    if (marker != NULL) {
        return restore_fail(
            restoring, MDL_EXIT_REFUSED,
            apr_psprintf(p,
                         "The backup %s was being restored into %s: restore that, or begin with an "
                         "empty folder and an empty database.",
                         marker, restoring->folder));
    }
    if (mdl_storage_has_blobs(restoring->folder, p) ||
        exists(apr_pstrcat(p, restoring->folder, "/" MDL_STORAGE_IDENTITY_FILE, NULL))) {
        return restore_fail(
            restoring, MDL_EXIT_REFUSED,
            apr_psprintf(p,
                         "%s is not empty: stop httpd, rename this folder, and make "
                         "an empty one with the same owner.",
                         restoring->folder));
    }
    return MDL_EXIT_DONE;
}

static int sqlite_check(restoring_t *restoring)
{
    const char *path = restoring->database;
    apr_pool_t *p = restoring->ctl->p;
    int found = exists(path);

    restoring->loaded = restoring->ended = found && restoring->resumed;
    return (found || exists(apr_pstrcat(p, path, "-wal", NULL))) && !restoring->ended
               ? restore_fail(restoring, MDL_EXIT_REFUSED,
                              apr_psprintf(p,
                                           "There is a database already: stop httpd, and rename "
                                           "%s and %s-wal.",
                                           path, path))
               : MDL_EXIT_DONE;
}

static apr_status_t pending_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_restored_pending(db, p, ((restoring_t *)arg)->set.hold);
}

static int pgsql_check(restoring_t *restoring)
{
    mdl_ctl_t *ctl = restoring->ctl;
    const char *why;
    int version = 0;
    apr_status_t rv;

    if (mdl_ctl_connect(ctl, &why) != MDL_EXIT_DONE) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable", why);
    }
    rv = mdl_migrate_version(ctl->db, &version, ctl->p);
    if (rv != APR_SUCCESS) {
        return database_fail(restoring, rv);
    }
    if (version > 0 && !restoring->resumed) {
        return restore_fail(restoring, MDL_EXIT_REFUSED,
                            "There is a database already: stop httpd, then rename or drop it, and "
                            "create an empty one with the same owner.");
    }
    if (version > 0) {
        rv = mdl_db_read(ctl->db, pending_effect, restoring, ctl->p);
        restoring->loaded = 1;
        restoring->ended = rv == APR_ENOENT;
        return rv == APR_SUCCESS || rv == APR_ENOENT ? MDL_EXIT_DONE : database_fail(restoring, rv);
    }
    return MDL_EXIT_DONE;
}

static int places_check(restoring_t *restoring)
{
    const char *driver = restoring->ctl->settings->db_driver;
    int failed;

    if (strcmp(driver, restoring->set.driver) != 0) {
        return restore_fail(restoring, MDL_EXIT_REFUSED,
                            apr_psprintf(restoring->ctl->p,
                                         "The backup is of a database on %s, and DBDriver is %s.",
                                         restoring->set.driver, driver));
    }
    failed = folder_lock(restoring);
    failed = failed ? failed : folder_check(restoring);
    if (!failed) {
        failed = restoring->is_sqlite ? sqlite_check(restoring) : pgsql_check(restoring);
    }
    return !failed && restoring->folder != NULL && !restoring->resumed ? marker_write(restoring)
                                                                       : failed;
}

/* --- files --- */

static apr_status_t files_step(void *baton)
{
    restoring_t *restoring = baton;

    mdl_ctl_progress_tell(&restoring->faults.progress,
                          restoring->files.files + restoring->files.faults);
    return mdl_ctl_stopped() ? APR_EINTR : APR_SUCCESS;
}

static void file_found(void *baton, const mdl_blob_t *blob, mdl_blob_fault_t fault, apr_status_t rv)
{
    mdl_ctl_fault_found(&((restoring_t *)baton)->faults, blob, fault, rv);
}

static int files_restore(restoring_t *restoring)
{
    mdl_ctl_t *ctl = restoring->ctl;
    mdl_storage_config_t from = {.folder = restoring->set.folder};
    mdl_storage_config_t to = {.folder = restoring->folder,
                               .reserve = ctl->settings->storage.reserve};
    mdl_storage_t *source;
    apr_status_t rv;

    if (restoring->folder == NULL) {
        return MDL_EXIT_DONE;
    }
    restoring->files = (mdl_backup_files_t){
        .set = &restoring->set, .step = files_step, .found = file_found, .baton = restoring};
    if ((rv = mdl_storage_open(&source, &from, ctl->p)) != APR_SUCCESS) {
        return place_fail(restoring, from.folder, rv);
    }
    restoring->files.from = restoring->faults.storage = source;
    if ((rv = mdl_storage_open(&restoring->files.to, &to, ctl->p)) != APR_SUCCESS) {
        return place_fail(restoring, restoring->folder, rv);
    }
    mdl_backup_files_clean(restoring->files.to, ctl->p);
    restoring->faults.progress = mdl_ctl_progress_begin(
        ctl, "files", restoring->set.files + restoring->set.faults);
    rv = mdl_backup_files_copy(&restoring->files, ctl->p);
    mdl_ctl_progress_clear(&restoring->faults.progress);
    if (rv == APR_EINTR) {
        return restore_fail(restoring, MDL_EXIT_PROBLEM,
                            "The restoration was stopped: the same command goes on.");
    }
    return rv == APR_SUCCESS ? MDL_EXIT_DONE : place_fail(restoring, restoring->folder, rv);
}

/* --- the database --- */

MDL_EFFECT(mdl_restored, mdl_restored_t *)
MDL_EFFECT(mdl_write, mdl_write_t *)

/* Brings the schema up to date, and tells the database that it was restored. */
static apr_status_t database_tell(restoring_t *restoring)
{
    mdl_ctl_t *ctl = restoring->ctl;
    mdl_write_t write = {
        .effect = mdl_restored_effect, .arg = &restoring->restored, .audit = &ctl->audit};
    int applied;
    apr_status_t rv;

    mdl_db_limit_waits(ctl->db, 0);
    ctl->audit.noun_id = restoring->set.name;
    rv = mdl_migrate(ctl->db, &applied, ctl->p);
    return rv == APR_SUCCESS ? mdl_db_write(ctl->db, mdl_write_effect, &write, ctl->p) : rv;
}

static int file_fail(restoring_t *restoring, apr_status_t rv)
{
    return rv == APR_EMISMATCH
               ? restore_fail(
                     restoring, MDL_EXIT_PROBLEM,
                     apr_psprintf(restoring->ctl->p, "%s is damaged: take another backup.",
                                  mdl_backup_path(&restoring->set, "database", restoring->ctl->p)))
               : place_fail(restoring, restoring->database, rv);
}

/* Gives the file its name once it is complete and nothing else has it open. */
static apr_status_t sqlite_name(const char *temporary, const char *path, apr_pool_t *p)
{
    const char *slash = strrchr(path, '/');
    const char *const paths[] = {temporary, apr_pstrmemdup(p, path, (apr_size_t)(slash - path))};

    unlink(apr_pstrcat(p, temporary, "-writer", NULL));
    if (exists(apr_pstrcat(p, temporary, "-wal", NULL))) {
        return APR_EBUSY;
    }
    for (int i = 0; i < 2; i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

        if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL) ||
            (i == 0 && rename(temporary, path) != 0)) {
            return APR_FROM_OS_ERROR(errno);
        }
        close(fd);
    }
    return APR_SUCCESS;
}

static int sqlite_restore(restoring_t *restoring)
{
    mdl_ctl_t *ctl = restoring->ctl;
    const char *temporary = apr_pstrcat(ctl->p, restoring->database, ".restoring", NULL);
    const char *why;
    apr_pool_t *pool;
    int failed = MDL_EXIT_DONE;
    apr_status_t rv;

    unlink(apr_pstrcat(ctl->p, temporary, "-wal", NULL)); /* left by one that was killed */
    unlink(apr_pstrcat(ctl->p, temporary, "-shm", NULL));
    if ((rv = mdl_backup_set_database(&restoring->set, temporary, ctl->p)) != APR_SUCCESS) {
        return file_fail(restoring, rv);
    }
    apr_pool_create(&pool, ctl->p); /* its end closes the database */
    apr_pool_tag(pool, "mdl_restore");
    rv = mdl_db_open(&ctl->db, "sqlite3", temporary, &why, pool);
    if (rv != APR_SUCCESS) {
        failed = mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable", why);
    } else if ((rv = database_tell(restoring)) != APR_SUCCESS) {
        failed = database_fail(restoring, rv);
    }
    ctl->db = NULL;
    apr_pool_destroy(pool);
    if (!failed && (rv = sqlite_name(temporary, restoring->database, ctl->p)) != APR_SUCCESS) {
        failed = place_fail(restoring, restoring->database, rv);
    }
    return failed;
}

static int pgsql_restore(restoring_t *restoring)
{
    mdl_ctl_t *ctl = restoring->ctl;
    mdl_db_dump_t load = {.params = ctl->settings->db_params,
                          .path = mdl_backup_path(&restoring->set, "database", ctl->p)};
    apr_status_t rv;

    if (!restoring->loaded) {
        if ((rv = mdl_backup_set_database(&restoring->set, NULL, ctl->p)) != APR_SUCCESS) {
            return file_fail(restoring, rv);
        }
        if (mdl_db_load(&load, ctl->p) != APR_SUCCESS) {
            return restore_fail(restoring, MDL_EXIT_DATABASE, load.why);
        }
    }
    rv = database_tell(restoring);
    /* Until the tables are analyzed, plans are made for empty ones. */
    rv = rv == APR_SUCCESS ? mdl_db_command(ctl->db, "ANALYZE") : rv;
    return rv == APR_SUCCESS ? MDL_EXIT_DONE : database_fail(restoring, rv);
}

/* --- the end --- */

static int verify_found(void *baton, const mdl_faulty_blob_t *blob, apr_pool_t *p)
{
    (void)p;
    mdl_ctl_fault_found(&((restoring_t *)baton)->faults, &blob->blob, blob->fault, blob->rv);
    return 1;
}

/* From here on httpd may start. */
static int folder_join(restoring_t *restoring)
{
    const char *path;
    apr_status_t rv = APR_SUCCESS;

    if (restoring->folder == NULL) {
        return MDL_EXIT_DONE;
    }
    path = marker_path(restoring);
    if (restoring->set.identity != NULL) {
        rv = mdl_storage_set_identity(restoring->folder, restoring->set.identity,
                                      restoring->ctl->p);
    }
    if (rv == APR_SUCCESS && unlink(path) != 0) {
        rv = APR_FROM_OS_ERROR(errno);
    }
    return rv == APR_SUCCESS ? MDL_EXIT_DONE : place_fail(restoring, restoring->folder, rv);
}

static void verify_step(void *baton, apr_int64_t looked)
{
    mdl_ctl_progress_tell(&((restoring_t *)baton)->faults.progress, looked);
}

static int storage_verify(restoring_t *restoring)
{
    mdl_ctl_t *ctl = restoring->ctl;
    mdl_storage_t *storage;
    const char *why = NULL;
    int failed = mdl_ctl_storage_open(ctl, 0, &storage, &why);
    apr_status_t rv;

    if (failed) {
        return mdl_ctl_storage_fail(ctl, failed, why);
    }
    restoring->faults.storage = storage;
    restoring->verify = (mdl_storage_verify_t){.storage = storage,
                                               .full = 1,
                                               .found = verify_found,
                                               .step = verify_step,
                                               .baton = restoring};
    restoring->faults.progress = mdl_ctl_progress_begin(
        ctl, "files read", restoring->set.files + restoring->set.faults + restoring->set.objects);
    rv = mdl_storage_verify(ctl->db, &restoring->verify, ctl->p);
    mdl_ctl_progress_clear(&restoring->faults.progress);
    if (rv == MDL_OBJECT_EAWAY || rv == MDL_OBJECT_EDENIED) {
        return mdl_ctl_storage_fail(ctl, MDL_EXIT_PROBLEM,
                                    "Everything is restored, but the object store does not answer "
                                    "or refuses access.  Once it does: downloadsctl storage verify "
                                    "--full");
    }
    return rv == APR_SUCCESS ? MDL_EXIT_DONE : database_fail(restoring, rv);
}

/* Why httpd will not start, or not serve what there is, for lack of the right secret; NULL: it is
   there. */
static const char *secret_fault(const restoring_t *restoring)
{
    const mdl_ctl_t *ctl = restoring->ctl;
    const mdl_health_t health = {
        .p = ctl->p, .settings = ctl->settings, .secret = ctl->secret, .db = ctl->db};
    const char *message = ctl->no_secret;

    return ctl->secret != NULL && mdl_health_secret(&health, &message) ? NULL : message;
}

static int restore_report(restoring_t *restoring, mdl_json_t *document)
{
    mdl_ctl_t *ctl = restoring->ctl;
    const mdl_storage_verify_t *verify = &restoring->verify;
    const char *since = mdl_clock_rfc3339(restoring->set.made_at, ctl->p);
    const char *fault = secret_fault(restoring);
    apr_int64_t faulty = 0;

    for (int i = 0; i < MDL_BLOB_FAULTS; i++) {
        faulty += verify->faults[i];
    }
    mdl_json_add_string(document, "backup", restoring->set.name);
    mdl_json_add_time(document, "made_at", restoring->set.made_at);
    mdl_json_add_int(document, "files", verify->looked);
    mdl_json_add_int(document, "copied", restoring->files.copied);
    mdl_json_add_int(document, "copied_bytes", restoring->files.copied_bytes);
    mdl_json_add_int(document, "faulty", faulty);
    mdl_json_add_int(document, "emails_set_aside", restoring->restored.emails);
    mdl_printer_line(ctl->output,
                     "Restored the state of %s: %" APR_INT64_T_FMT
                     " files were read, %" APR_INT64_T_FMT " are faulty.",
                     since, verify->looked, faulty);
    if (restoring->restored.emails > 0) {
        mdl_printer_line(ctl->output,
                         "%" APR_INT64_T_FMT
                         " emails waited then, and may have left since.  They are not sent; to "
                         "send them: downloadsctl job retry --failed --type email",
                         restoring->restored.emails);
    }
    mdl_json_add_string(document, "secret_fault", fault);
    mdl_printer_line(
        ctl->output,
        "What was changed since is lost: orders, license keys that were given, and API "
        "keys and members that were removed.  %s",
        fault != NULL ? fault : "Now start httpd.");
    mdl_printer_document(ctl->output, document);
    return faulty == 0 && fault == NULL ? MDL_EXIT_DONE : MDL_EXIT_PROBLEM;
}

int mdl_ctl_restore(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p);
    restoring_t restoring = {
        .ctl = ctl,
        .folder = ctl->settings->storage.folder,
        .database = ctl->settings->db_params,
        .is_sqlite = strcmp(ctl->settings->db_driver, "sqlite3") == 0,
        .faults = {.ctl = ctl, .faults = mdl_json_add_array(document, "faults")},
        .restored = {.send_emails = ctl->send_emails}};
    char *path = NULL;
    const char *why;
    int failed;

    apr_filepath_merge(&path, NULL, ctl->arguments[0], APR_FILEPATH_TRUENAME, ctl->p);
    if (mdl_backup_set_read(&restoring.set, path != NULL ? path : ctl->arguments[0], &why,
                            ctl->p) != APR_SUCCESS) {
        return restore_fail(&restoring, MDL_EXIT_PROBLEM, why);
    }
    restoring.restored.made_at = restoring.set.made_at;
    if ((failed = places_check(&restoring))) {
        return failed;
    }
    mdl_ctl_await_stop();
    failed = files_restore(&restoring);
    if (!failed && !restoring.ended) {
        mdl_ctl_progress_say(&restoring.faults.progress, "The database");
        failed = restoring.is_sqlite ? sqlite_restore(&restoring) : pgsql_restore(&restoring);
        mdl_ctl_progress_clear(&restoring.faults.progress);
    }
    failed = failed ? failed : folder_join(&restoring);
    failed = failed ? failed : storage_verify(&restoring);
    return failed ? failed : restore_report(&restoring, document);
}
