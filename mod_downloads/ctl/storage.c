#include "ctl/storage.h"

#include <stddef.h>
#include <string.h>

#include <apr_signal.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/http/client.h"
#include "core/catalog/blob.h"
#include "core/catalog/import.h"
#include "core/catalog/storage_hold.h"
#include "core/catalog/storage_identity.h"
#include "core/catalog/storage_verify.h"
#include "core/catalog/storage_status.h"
#include "core/write.h"
#include "ctl/progress.h"

static const char store_error[] = "The object store does not answer, refuses access or is not "
                                  "configured: see downloadsctl check, line objects.";

#define LISTED   1000 /* faulty files that --json lists */
#define HOLD_OLD apr_time_from_sec(86400)

int mdl_ctl_storage_open(mdl_ctl_t *ctl, int join, mdl_storage_t **storage, const char **why)
{
    const mdl_storage_config_t *config = &ctl->settings->storage;
    int version;
    int failed = mdl_ctl_check_schema(ctl, &version, why);
    char text[120];
    apr_status_t rv;

    if (failed) {
        return failed;
    }
    *why = NULL;
    apr_signal(SIGPIPE, SIG_IGN); /* the store may close a connection */
    rv = mdl_http_global_init(ctl->p);
    if (rv == APR_SUCCESS) {
        rv = mdl_storage_belongs(ctl->db, config, join, why, ctl->p);
        if (rv != APR_SUCCESS && *why == NULL) {
            *why = mdl_ctl_database_error(ctl, rv);
            return MDL_EXIT_DATABASE;
        }
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_storage_open(storage, config, ctl->p);
    }
    if (rv != APR_SUCCESS && *why == NULL) {
        *why = apr_psprintf(ctl->p, "The storage %s can't be opened: %s.",
                            config->folder != NULL ? config->folder : config->objects.url,
                            apr_strerror(rv, text, sizeof text));
    }
    return rv == APR_SUCCESS ? MDL_EXIT_DONE : MDL_EXIT_PROBLEM;
}

int mdl_ctl_storage_fail(mdl_ctl_t *ctl, int failed, const char *why)
{
    return mdl_ctl_fail(
        ctl, failed, failed == MDL_EXIT_DATABASE ? "database_unavailable" : "storage_unavailable",
        why);
}

/* --- verify --- */

typedef struct {
    mdl_ctl_t *ctl;
    mdl_storage_t *storage;
    mdl_json_t *list;
    apr_int64_t repaired;
    apr_int64_t queued;
    mdl_ctl_progress_t progress;
} verify_t;

MDL_EFFECT(mdl_import_again, mdl_import_again_t *)
MDL_EFFECT(mdl_write, mdl_write_t *)

/* Queues an import of a faulty blob's bytes for one of its assets.  Returns its job, or NULL and
   why. */
static const char *asset_import_again(const verify_t *verify, const mdl_faulty_blob_t *blob,
                                      const mdl_faulty_asset_t *asset, const char **why,
                                      apr_pool_t *p)
{
    const mdl_settings_t *settings = verify->ctl->settings;
    mdl_ctl_t step = mdl_ctl_step(verify->ctl, p);
    mdl_problem_t problem = {0};
    mdl_import_again_t again = {
        .policy = &settings->ingest,
        .version = {.asset_id = asset->id,
                    .source_url = asset->source_url,
                    .import = {.shop_id = asset->shop_id,
                               .secret = verify->ctl->secret,
                               .expected_sha256 = blob->blob.sha256,
                               .max_attempts = settings->ingest_max_attempts,
                               .problem = &problem}}};
    mdl_write_t write = {.effect = mdl_import_again_effect,
                         .arg = &again,
                         .audit = &step.audit,
                         .problem = &problem};
    apr_status_t rv;

    step.audit.shop_id = asset->shop_id;
    step.audit.noun_id = apr_psprintf(p, "%" APR_INT64_T_FMT, asset->id);
    rv = mdl_db_write(step.db, mdl_write_effect, &write, p);
    *why = rv == MDL_EPROBLEM ? problem.message : mdl_ctl_database_error(&step, rv);
    return rv == APR_SUCCESS ? again.version.import.job.id : NULL;
}

static const char *orders_text(const mdl_faulty_asset_t *asset, apr_pool_t *p)
{
    const char *numbers = apr_array_pstrcat(p, asset->numbers, ' ');

    if (asset->orders == 0) {
        return "no order";
    }
    return apr_psprintf(p, "%d%s order%s: %s%s", asset->orders,
                        asset->orders == MDL_FAULT_ORDERS_MAX ? " or more" : "",
                        asset->orders == 1 ? "" : "s", numbers,
                        asset->orders > asset->numbers->nelts ? " …" : "");
}

/* Prints a line, and adds to list unless it is NULL. */
static void asset_report(verify_t *verify, const mdl_faulty_blob_t *blob,
                         const mdl_faulty_asset_t *asset, int import, mdl_json_t *list,
                         apr_pool_t *p)
{
    mdl_printer_t *output = verify->ctl->output;
    const char *why = NULL, *job = NULL;
    mdl_json_t *entry, *orders;

    mdl_printer_line(output,
                     "  asset %" APR_INT64_T_FMT " of shop %" APR_INT64_T_FMT ", %s, given to %s",
                     asset->id, asset->shop_id, asset->filename, orders_text(asset, p));
    if (import) {
        job = asset_import_again(verify, blob, asset, &why, p);
        mdl_printer_line(output, job != NULL ? "    is imported again by %s" : "    %s",
                         job != NULL ? job : why);
        verify->queued += job != NULL;
    }
    if (list == NULL) {
        return;
    }
    entry = mdl_json_add_object(list, NULL);
    mdl_json_add_int(entry, "id", asset->id);
    mdl_json_add_int(entry, "shop_id", asset->shop_id);
    mdl_json_add_string(entry, "filename", asset->filename);
    mdl_json_add_int(entry, "orders", asset->orders);
    orders = mdl_json_add_array(entry, "order_ids");
    for (int i = 0; i < asset->numbers->nelts; i++) {
        mdl_json_add_string(orders, NULL, APR_ARRAY_IDX(asset->numbers, i, const char *));
    }
    mdl_json_add_string(entry, "job_id", job);
    mdl_json_add_string(entry, "not_imported", why);
}

/* Restores the mode of a file that its owner could not read; returns whether it can be read now. */
static int file_permit(const verify_t *verify, const mdl_faulty_blob_t *blob, apr_pool_t *p)
{
    apr_int64_t size;

    return blob->blob.object == NULL && blob->fault == MDL_BLOB_UNREADABLE &&
           APR_STATUS_IS_EACCES(blob->rv) &&
           mdl_storage_permit(verify->storage, &blob->blob, p) == APR_SUCCESS &&
           mdl_storage_size(verify->storage, &blob->blob, &size, p) == APR_SUCCESS &&
           size == blob->blob.size;
}

MDL_EFFECT(mdl_blob_give_up, const mdl_blob_t *)

/* A missing object has been recorded as such, and one with other bytes is now. */
static int object_makes_way(const verify_t *verify, const mdl_faulty_blob_t *blob, apr_pool_t *p)
{
    if (blob->fault == MDL_BLOB_MISSING) {
        return 1;
    }
    if (blob->fault == MDL_BLOB_UNREADABLE || mdl_db_write(verify->ctl->db, mdl_blob_give_up_effect,
                                                           (void *)&blob->blob, p) != APR_SUCCESS) {
        return 0;
    }
    mdl_printer_line(verify->ctl->output, "  is given up");
    return 1;
}

/* Whether an import can replace the file.  A file of the right size counts as complete, so a
   changed file is first set aside, away from customers.  What can't be read may be intact and
   stays. */
static int file_makes_way(const verify_t *verify, const mdl_faulty_blob_t *blob, apr_pool_t *p)
{
    if (blob->fault != MDL_BLOB_CHANGED) {
        return blob->fault != MDL_BLOB_UNREADABLE;
    }
    if (mdl_storage_set_aside(verify->storage, &blob->blob, p) != APR_SUCCESS) {
        return 0;
    }
    mdl_printer_line(verify->ctl->output, "  is called %s.damaged now", blob->place);
    return 1;
}

static const char *remedy_of(const mdl_faulty_blob_t *blob, apr_pool_t *p)
{
    char text[120];

    if (blob->fault != MDL_BLOB_UNREADABLE) {
        return "Restore it from a backup, or have the shop add the same file again.";
    }
    return apr_psprintf(p,
                        "It can't be read (%s): give it to the user that httpd runs as; if the "
                        "disk can't read it, restore it from a backup.",
                        apr_strerror(blob->rv, text, sizeof text));
}

/* Called for each faulty blob; returns whether it still is faulty. */
static int verify_found(void *baton, const mdl_faulty_blob_t *blob, apr_pool_t *p)
{
    verify_t *verify = baton;
    mdl_printer_t *output = verify->ctl->output;
    const char *fault = mdl_blob_fault_names[blob->fault];
    mdl_json_t *entry, *assets = NULL;
    int repaired = verify->ctl->repair && file_permit(verify, blob, p);
    int import;

    mdl_ctl_progress_clear(&verify->progress);
    mdl_printer_line(output, "%s: %s%s", blob->place, fault, repaired ? ", and readable now" : "");
    if (mdl_json_length(verify->list) < LISTED) {
        entry = mdl_json_add_object(verify->list, NULL);
        mdl_json_add_string(entry, "sha256", blob->blob.sha256);
        mdl_json_add_string(entry, "place", blob->place);
        mdl_json_add_string(entry, "fault", fault);
        mdl_json_add_int(entry, "size", blob->blob.size);
        mdl_json_add_bool(entry, "repaired", repaired);
        mdl_json_add_string(entry, "remedy", repaired ? NULL : remedy_of(blob, p));
        mdl_json_add_bool(entry, "more_assets", blob->more_assets);
        assets = mdl_json_add_array(entry, "assets");
    }
    if (repaired) {
        verify->repaired++;
        return 0;
    }
    import = verify->ctl->repair && (blob->blob.object != NULL ? object_makes_way(verify, blob, p)
                                                               : file_makes_way(verify, blob, p));
    for (int i = 0; i < blob->assets->nelts; i++) {
        asset_report(verify, blob, APR_ARRAY_IDX(blob->assets, i, mdl_faulty_asset_t *), import,
                     assets, p);
    }
    if (blob->assets->nelts == 0) {
        mdl_printer_line(output,
                         "  of an upload that is not completed yet, or of a former version");
    } else if (blob->more_assets) {
        mdl_printer_line(output, "  and other assets");
    }
    mdl_printer_line(output, "  %s", remedy_of(blob, p));
    return 1;
}

/* Prints the last line, or completes the JSON document; returns the exit code. */
static int verify_report(const verify_t *verify, const mdl_storage_verify_t *all,
                         mdl_json_t *document)
{
    mdl_ctl_t *ctl = verify->ctl;
    const char *each = "";
    apr_int64_t faults = 0;

    mdl_json_add_int(document, "files", all->looked);
    for (int i = 0; i < MDL_BLOB_FAULTS; i++) {
        const char *name = mdl_blob_fault_names[i];

        faults += all->faults[i];
        mdl_json_add_int(document, name, all->faults[i]);
        each = apr_psprintf(ctl->p, "%s, %" APR_INT64_T_FMT " %s", each, all->faults[i],
                            i == MDL_BLOB_WRONG_SIZE ? "of another size" : name);
    }
    mdl_json_add_int(document, "repaired", verify->repaired);
    mdl_json_add_int(document, "imports_queued", verify->queued);
    mdl_json_add_bool(document, "ok", faults == 0);
    mdl_printer_note(ctl->output, "%" APR_INT64_T_FMT " file%s looked at%s%s", all->looked,
                     all->looked == 1 ? " was" : "s were", ctl->full ? " and read" : "", each);
    if (ctl->repair) {
        mdl_printer_note(ctl->output,
                         "%" APR_INT64_T_FMT " repaired, %" APR_INT64_T_FMT
                         " import%s queued: when these have ended, verify again.",
                         verify->repaired, verify->queued, verify->queued == 1 ? "" : "s");
    }
    mdl_printer_document(ctl->output, document);
    return faults == 0 ? MDL_EXIT_DONE : MDL_EXIT_PROBLEM;
}

static void verify_step(void *baton, apr_int64_t looked)
{
    mdl_ctl_progress_tell(&((verify_t *)baton)->progress, looked);
}

MDL_EFFECT(mdl_storage_read_status, mdl_storage_status_t *)

/* All rows are counted, which takes a while, so only for somebody who looks. */
static void verify_count(verify_t *verify)
{
    mdl_storage_status_t status = {0};

    if (!mdl_ctl_progress_shown(verify->ctl)) {
        return;
    }
    mdl_db_limit_waits(verify->ctl->db, 0);
    if (mdl_db_read(verify->ctl->db, mdl_storage_read_status_effect, &status, verify->ctl->p) ==
        APR_SUCCESS) {
        verify->progress = mdl_ctl_progress_begin(verify->ctl, "files",
                                                  status.files + status.objects);
    }
    mdl_db_limit_waits(verify->ctl->db, 1);
}

int mdl_ctl_storage_verify(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p);
    verify_t verify = {.ctl = ctl, .list = mdl_json_add_array(document, "faults")};
    mdl_storage_verify_t all = {
        .full = ctl->full, .found = verify_found, .step = verify_step, .baton = &verify};
    const char *why = NULL;
    int failed = mdl_ctl_storage_open(ctl, 0, &verify.storage, &why);
    apr_status_t rv;

    if (failed) {
        return mdl_ctl_storage_fail(ctl, failed, why);
    }
    if (ctl->repair && ctl->secret == NULL) {
        return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration", ctl->no_secret);
    }
    all.storage = verify.storage;
    verify_count(&verify);
    rv = mdl_storage_verify(ctl->db, &all, ctl->p);
    mdl_ctl_progress_clear(&verify.progress);
    if (rv == MDL_OBJECT_EAWAY || rv == MDL_OBJECT_EDENIED) {
        return mdl_ctl_storage_fail(ctl, MDL_EXIT_PROBLEM, store_error);
    }
    if (rv != APR_SUCCESS) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable",
                            mdl_ctl_database_error(ctl, rv));
    }
    return verify_report(&verify, &all, document);
}

/* --- hold, release --- */

static const mdl_field_t hold_fields[] = {
    {"id", MDL_FIELD_TEXT, offsetof(mdl_storage_hold_t, id), 1, NULL},
    {"user", MDL_FIELD_TEXT, offsetof(mdl_storage_hold_t, user), 1, NULL},
    {"since", MDL_FIELD_TIME, offsetof(mdl_storage_hold_t, since), 1, NULL},
    {0},
};

typedef struct {
    mdl_storage_hold_t hold;
    mdl_ctl_t *ctl;
} hold_t;

static apr_status_t storage_hold_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    hold_t *hold = arg;
    apr_status_t rv = mdl_storage_hold(db, p, &hold->hold);

    hold->ctl->audit.noun_id = hold->hold.id;
    return rv;
}

int mdl_ctl_storage_hold(mdl_ctl_t *ctl)
{
    hold_t hold = {.hold = {.user = ctl->audit.user}, .ctl = ctl};
    int failed = mdl_ctl_write(ctl, storage_hold_effect, &hold, NULL);

    if (!failed) {
        mdl_printer_result(ctl->output, hold_fields, &hold.hold, "%s", hold.hold.id);
        mdl_printer_bare(ctl->output, hold.hold.id);
    }
    return failed;
}

static const mdl_field_t release_fields[] = {
    {"released", MDL_FIELD_NUMBER, offsetof(mdl_storage_release_t, released), 1, NULL},
    {0},
};

MDL_EFFECT(mdl_storage_release, mdl_storage_release_t *)

int mdl_ctl_storage_release(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    const char *id = ctl->arguments[0];
    mdl_storage_release_t release = {.id = strcmp(id, "all") != 0 ? id : NULL, .problem = &problem};
    int failed = mdl_ctl_write(ctl, mdl_storage_release_effect, &release, &problem);

    if (!failed) {
        mdl_printer_result(ctl->output, release_fields, &release,
                           "%" APR_INT64_T_FMT " hold%s ended.", release.released,
                           release.released == 1 ? " has" : "s have");
    }
    return failed;
}

/* --- check --- */

typedef struct {
    mdl_ctl_t *ctl;
    const char *first; /* NULL: no fault */
    apr_int64_t count;
} sample_t;

static int sample_found(void *baton, const mdl_faulty_blob_t *blob, apr_pool_t *p)
{
    sample_t *sample = baton;
    const mdl_faulty_asset_t *asset = blob->assets->nelts > 0
                                          ? APR_ARRAY_IDX(blob->assets, 0, mdl_faulty_asset_t *)
                                          : NULL;

    if (sample->count++ == 0) {
        sample->first = apr_pstrcat(
            sample->ctl->p, blob->place, " is ", mdl_blob_fault_names[blob->fault],
            asset == NULL
                ? ""
                : apr_psprintf(p, " (asset %" APR_INT64_T_FMT " of shop %" APR_INT64_T_FMT ", %s)",
                               asset->id, asset->shop_id, asset->filename),
            NULL);
    }
    return 1;
}

static apr_status_t storage_held_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_storage_held(db, arg, p);
}

static void hold_warn(mdl_ctl_t *ctl)
{
    mdl_storage_hold_t hold;

    if (mdl_db_read(ctl->db, storage_held_effect, &hold, ctl->p) == APR_SUCCESS &&
        hold.since < apr_time_now() - HOLD_OLD) {
        APR_ARRAY_PUSH(ctl->warnings, const char *) = apr_psprintf(
            ctl->p,
            "%s has held the storage since %s, so that no file is removed from it: if no copy is "
            "being made, downloadsctl storage release %s.",
            hold.user, mdl_clock_rfc3339(hold.since, ctl->p), hold.id);
    }
}

int mdl_ctl_check_files(mdl_ctl_t *ctl, const char **message)
{
    mdl_storage_t *storage;
    sample_t sample = {.ctl = ctl};
    mdl_storage_verify_t some = {.found = sample_found, .baton = &sample};
    apr_int64_t total;
    apr_status_t rv;

    if (ctl->settings->db_driver == NULL || ctl->settings->db_params == NULL ||
        (ctl->settings->storage.folder == NULL && ctl->settings->storage.objects.url == NULL) ||
        ctl->no_owner != NULL || mdl_ctl_storage_open(ctl, 0, &storage, message) != MDL_EXIT_DONE) {
        *message = "Not tried: database and storage come first.";
        return 0;
    }
    some.storage = storage;
    if ((rv = mdl_storage_sample(ctl->db, &some, &total, ctl->p)) != APR_SUCCESS) {
        *message = rv == MDL_OBJECT_EAWAY || rv == MDL_OBJECT_EDENIED
                       ? store_error
                       : mdl_ctl_database_error(ctl, rv);
        return 0;
    }
    hold_warn(ctl);
    *message = sample.count == 0
                   ? apr_psprintf(ctl->p,
                                  "%" APR_INT64_T_FMT " of %" APR_INT64_T_FMT
                                  " looked at; all: downloadsctl storage verify",
                                  some.looked, total)
                   : apr_psprintf(ctl->p,
                                  "Of %" APR_INT64_T_FMT
                                  " files that were looked at %" APR_INT64_T_FMT
                                  " can't be delivered: %s.  downloadsctl storage verify looks at "
                                  "all and says what to do.",
                                  some.looked, sample.count, sample.first);
    return sample.count == 0;
}
