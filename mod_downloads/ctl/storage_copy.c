#include "ctl/storage_copy.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_thread_proc.h>

#include "core/catalog/storage_clean.h"
#include "core/catalog/storage_copy.h"
#include "core/catalog/storage_status.h"
#include "ctl/progress.h"
#include "ctl/storage.h"

#define LISTED 1000 /* faulty or removed files that --json lists */
#define JOBS   4

/* --- status --- */

typedef struct {
    const char *folder;
    const char *store;
    mdl_storage_status_t status;
} status_t;

#define COUNT(name)                                                                                \
    {                                                                                              \
#name, MDL_FIELD_NUMBER,                                                                   \
            offsetof(status_t, status) + offsetof(mdl_storage_status_t, name), 1, NULL             \
    }

static const mdl_field_t status_fields[] = {
    {"folder", MDL_FIELD_TEXT, offsetof(status_t, folder), 1, NULL},
    COUNT(files),
    COUNT(file_bytes),
    {"store", MDL_FIELD_TEXT, offsetof(status_t, store), 1, NULL},
    COUNT(objects),
    COUNT(object_bytes),
    COUNT(missing),
    COUNT(strays),
    COUNT(holds),
    {0},
};

MDL_EFFECT(mdl_storage_read_status, mdl_storage_status_t *)

/* Reads the status.  All rows are counted, which may take longer than usual statements. */
static int status_read(mdl_ctl_t *ctl, mdl_storage_status_t *status)
{
    const char *why;

    if (mdl_ctl_connect(ctl, &why) == MDL_EXIT_DONE) {
        mdl_db_limit_waits(ctl->db, 0);
    }
    return ctl->audit.action != NULL
               ? mdl_ctl_write(ctl, mdl_storage_read_status_effect, status, NULL)
               : mdl_ctl_read(ctl, mdl_storage_read_status_effect, status, NULL);
}

int mdl_ctl_storage_status(mdl_ctl_t *ctl)
{
    status_t status = {.folder = ctl->settings->storage.folder,
                       .store = ctl->settings->storage.objects.url};
    int failed = status_read(ctl, &status.status);

    if (!failed) {
        mdl_printer_record(ctl->output, status_fields, &status);
    }
    return failed;
}

/* --- copy --- */

typedef struct {
    mdl_ctl_t *ctl;
    mdl_storage_copy_t *copy;
    mdl_storage_t *storage;
    mdl_json_t *faults;
    apr_int64_t copied;
    apr_int64_t bytes;
    apr_int64_t faulty;
    mdl_ctl_progress_t progress;
    atomic_int failed; /* whether a thread has failed, so that the others end, too */
} copying_t;

typedef struct {
    copying_t *copying;
    apr_thread_t *thread; /* NULL: not started */
    apr_pool_t *pool;
    int failed; /* exit code */
    const char *why;
} copier_t;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static void await_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt,
                               .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int copy_stopped(void *baton)
{
    return interrupted || atomic_load(&((copying_t *)baton)->failed);
}

static void fault_report(copying_t *copying, const mdl_copied_t *copied)
{
    mdl_ctl_t *ctl = copying->ctl;
    const char *fault = mdl_blob_fault_names[copied->fault];
    const char *place = mdl_storage_place(copying->storage, copied->blob, ctl->p);
    char text[120];
    mdl_json_t *entry;

    copying->faulty++;
    mdl_ctl_progress_clear(&copying->progress);
    mdl_printer_line(
        ctl->output, "%s: %s%s%s%s", place, fault, copied->fault == MDL_BLOB_UNREADABLE ? " (" : "",
        copied->fault == MDL_BLOB_UNREADABLE ? apr_strerror(copied->rv, text, sizeof text) : "",
        copied->fault == MDL_BLOB_UNREADABLE ? ")" : "");
    if (mdl_json_length(copying->faults) < LISTED) {
        entry = mdl_json_add_object(copying->faults, NULL);
        mdl_json_add_string(entry, "sha256", copied->blob->sha256);
        mdl_json_add_string(entry, "place", place);
        mdl_json_add_string(entry, "fault", fault);
    }
}

static void copy_done(void *baton, const mdl_copied_t *copied)
{
    copying_t *copying = baton;

    if (!copied->copied) {
        fault_report(copying, copied);
        return;
    }
    copying->copied++;
    copying->bytes += copied->blob->size;
    mdl_ctl_progress_tell(&copying->progress, copying->copied);
}

static void *APR_THREAD_FUNC copier_main(apr_thread_t *thread, void *data)
{
    copier_t *copier = data;
    copying_t *copying = copier->copying;
    const mdl_settings_t *settings = copying->ctl->settings;
    mdl_db_t *db;
    apr_status_t rv;

    (void)thread;
    rv = mdl_db_open(&db, settings->db_driver, settings->db_params, &copier->why, copier->pool);
    if (rv != APR_SUCCESS) {
        copier->failed = MDL_EXIT_DATABASE;
    } else if ((rv = mdl_storage_copy_run(copying->copy, db, &copier->why, copier->pool)) !=
               APR_SUCCESS) {
        copier->failed = copier->why != NULL ? MDL_EXIT_PROBLEM : MDL_EXIT_DATABASE;
        if (copier->why == NULL) {
            copier->why = mdl_health_database_error(rv, mdl_db_error(db), copier->pool);
        }
    }
    if (copier->failed) {
        atomic_store(&copying->failed, 1);
    }
    return NULL;
}

/* Returns the first that has failed, or NULL. */
static const copier_t *copiers_run(copying_t *copying, int count)
{
    apr_pool_t *p = copying->ctl->p;
    copier_t *copiers = apr_pcalloc(p, (apr_size_t)count * sizeof *copiers);
    const copier_t *failed = NULL;
    apr_status_t ignored;

    for (int i = 0; i < count; i++) {
        copiers[i].copying = copying;
        apr_pool_create_unmanaged_ex(&copiers[i].pool, NULL, NULL);
        apr_pool_tag(copiers[i].pool, "mdl_copier");
        if (apr_thread_create(&copiers[i].thread, NULL, copier_main, &copiers[i], p) !=
            APR_SUCCESS) {
            copiers[i].thread = NULL;
            copiers[i].failed = MDL_EXIT_PROBLEM;
            copiers[i].why = "No thread can be started: try fewer --jobs.";
        }
    }
    for (int i = count - 1; i >= 0; i--) {
        if (copiers[i].thread != NULL) {
            apr_thread_join(&ignored, copiers[i].thread);
        }
        copiers[i].why = apr_pstrdup(p, copiers[i].why);
        apr_pool_destroy(copiers[i].pool);
        failed = copiers[i].failed ? &copiers[i] : failed;
    }
    return failed;
}

static int copy_report(const copying_t *copying, apr_int64_t left, const copier_t *failed,
                       mdl_json_t *document)
{
    mdl_ctl_t *ctl = copying->ctl;
    int complete = left == 0 && copying->faulty == 0;

    mdl_printer_note(ctl->output,
                     "%" APR_INT64_T_FMT " file%s of %" APR_INT64_T_FMT
                     " bytes copied, %" APR_INT64_T_FMT " faulty, %" APR_INT64_T_FMT " left%s",
                     copying->copied, copying->copied == 1 ? "" : "s", copying->bytes,
                     copying->faulty, left,
                     interrupted ? "; stopped, the same command goes on" : "");
    if (failed != NULL) {
        return mdl_ctl_storage_fail(ctl, failed->failed, failed->why);
    }
    mdl_json_add_int(document, "copied", copying->copied);
    mdl_json_add_int(document, "bytes", copying->bytes);
    mdl_json_add_int(document, "faulty", copying->faulty);
    mdl_json_add_int(document, "left", left);
    mdl_json_add_bool(document, "stopped", interrupted);
    mdl_json_add_bool(document, "ok", complete);
    mdl_printer_document(ctl->output, document);
    return complete ? MDL_EXIT_DONE : MDL_EXIT_PROBLEM;
}

/* Opens a storage that has the places needed. */
static int places_open(mdl_ctl_t *ctl, int folder, int objects, mdl_storage_t **storage)
{
    const mdl_storage_config_t *config = &ctl->settings->storage;
    const char *why = NULL;
    int failed;

    if (folder && config->folder == NULL) {
        why = "DownloadsStorage is missing: it names the folder.";
    } else if (objects && config->objects.url == NULL) {
        why = "DownloadsObjectStore is missing: it names the bucket.";
    }
    if (why != NULL) {
        return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration", why);
    }
    failed = mdl_ctl_storage_open(ctl, 1, storage, &why);
    return failed ? mdl_ctl_storage_fail(ctl, failed, why) : MDL_EXIT_DONE;
}

int mdl_ctl_storage_copy(mdl_ctl_t *ctl)
{
    int from_folder = strcmp(ctl->arguments[0], "folder") == 0;
    mdl_json_t *document = mdl_json_object(ctl->p);
    copying_t copying = {.ctl = ctl, .faults = mdl_json_add_array(document, "faults")};
    mdl_storage_copying_t of = {.way = from_folder ? MDL_COPY_INTO_OBJECTS : MDL_COPY_INTO_FOLDER,
                                .rate = ctl->rate,
                                .stopped = copy_stopped,
                                .done = copy_done,
                                .baton = &copying};
    mdl_storage_status_t status;
    const copier_t *failed;
    int result;

    if (strcmp(ctl->arguments[from_folder], "object") != 0 ||
        strcmp(ctl->arguments[!from_folder], "folder") != 0) {
        return mdl_ctl_fail(ctl, MDL_EXIT_USAGE, "usage",
                            "storage copy takes \"folder object\" or \"object folder\".");
    }
    if ((result = places_open(ctl, 1, 1, &copying.storage)) ||
        (result = status_read(ctl, &status))) {
        return result;
    }
    copying.progress = mdl_ctl_progress_begin(ctl, "files",
                                              from_folder ? status.files : status.objects);
    of.storage = copying.storage;
    if (mdl_storage_copy_create(&copying.copy, &of, ctl->p) != APR_SUCCESS) {
        return mdl_ctl_storage_fail(ctl, MDL_EXIT_PROBLEM, "The system has no mutex left.");
    }
    await_interrupt();
    failed = copiers_run(&copying, ctl->jobs > 0 ? ctl->jobs : JOBS);
    mdl_ctl_progress_clear(&copying.progress);
    ctl->audit.action = NULL;
    result = status_read(ctl, &status);
    return result ? result
                  : copy_report(&copying, from_folder ? status.files : status.objects, failed,
                                document);
}

/* --- clean --- */

typedef struct {
    mdl_ctl_t *ctl;
    mdl_json_t *list;
    apr_int64_t removed;
    apr_int64_t bytes;
} cleaning_t;

static void clean_removed(void *baton, const char *what, apr_int64_t size)
{
    cleaning_t *cleaning = baton;
    mdl_json_t *entry;

    cleaning->removed++;
    cleaning->bytes += size > 0 ? size : 0;
    mdl_printer_note(cleaning->ctl->output, "%s: removed", what);
    if (mdl_json_length(cleaning->list) < LISTED) {
        entry = mdl_json_add_object(cleaning->list, NULL);
        mdl_json_add_string(entry, "place", what);
        mdl_json_add_int_if(entry, "size", size, size >= 0);
    }
}

static int clean_fail(mdl_ctl_t *ctl, const mdl_storage_clean_t *clean, apr_status_t rv)
{
    if (APR_STATUS_IS_EAGAIN(rv)) {
        return mdl_ctl_fail(ctl, MDL_EXIT_REFUSED, "storage_held",
                            "The storage is held, so that nothing is removed from it: wait until "
                            "the backup is made, or see downloadsctl storage release.");
    }
    return clean->why != NULL
               ? mdl_ctl_storage_fail(ctl, MDL_EXIT_PROBLEM, clean->why)
               : mdl_ctl_storage_fail(ctl, MDL_EXIT_DATABASE, mdl_ctl_database_error(ctl, rv));
}

int mdl_ctl_storage_clean(mdl_ctl_t *ctl)
{
    int is_folder = strcmp(ctl->arguments[0], "folder") == 0;
    mdl_json_t *document = mdl_json_object(ctl->p);
    cleaning_t cleaning = {.ctl = ctl, .list = mdl_json_add_array(document, "places")};
    mdl_storage_clean_t clean = {.removed = clean_removed, .baton = &cleaning};
    mdl_storage_status_t status;
    int result;
    apr_status_t rv;

    if (!is_folder && strcmp(ctl->arguments[0], "object") != 0) {
        return mdl_ctl_fail(ctl, MDL_EXIT_USAGE, "usage",
                            "storage clean takes \"folder\" or \"object\".");
    }
    if ((result = places_open(ctl, is_folder, !is_folder, &clean.storage)) ||
        (result = status_read(ctl, &status))) {
        return result;
    }
    rv = is_folder ? mdl_storage_clean_folder(ctl->db, &clean, ctl->p)
                   : mdl_storage_clean_objects(ctl->db, &clean, ctl->p);
    mdl_printer_note(ctl->output,
                     "%" APR_INT64_T_FMT " removed, %" APR_INT64_T_FMT " bytes; %" APR_INT64_T_FMT
                     " left until they are %s old",
                     cleaning.removed, cleaning.bytes, clean.kept, is_folder ? "a day" : "a week");
    if (rv != APR_SUCCESS) {
        return clean_fail(ctl, &clean, rv);
    }
    mdl_json_add_int(document, "removed", cleaning.removed);
    mdl_json_add_int(document, "bytes", cleaning.bytes);
    mdl_json_add_int(document, "kept", clean.kept);
    mdl_printer_document(ctl->output, document);
    return MDL_EXIT_DONE;
}
