#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/present.h"
#include "core/catalog/asset_use.h"
#include "core/catalog/category.h"
#include "core/catalog/product.h"
#include "core/identifier.h"
#include "core/job_source.h"
#include "core/order/job_control.h"
#include "core/version.h"
#include "settings/catalog.h"
#include "settings/files.h"
#include "settings/frame.h"
#include "settings/import_error.h"

#define WAITING_SHOWN 20  /* orders */
#define REFRESH_AFTER "5" /* seconds, while bytes come */

/* --- the page ------------------------------------------------------------------------------- */

typedef struct {
    mdl_asset_use_t use;
    mdl_list_page_t categories;
} file_t;

static apr_status_t file_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    file_t *file = arg;
    apr_status_t rv = mdl_asset_use_read(db, p, &file->use);

    return rv == APR_SUCCESS ? mdl_category_page(db, p, &file->categories) : rv;
}

static int job_is_open(const mdl_job_t *job)
{
    return job != NULL && (job->status == MDL_JOB_QUEUED || job->status == MDL_JOB_RUNNING);
}

static void file_add_job(mdl_json_t *to, const mdl_job_t *job)
{
    mdl_json_t *added = mdl_json_add_object(to, "job");

    mdl_frame_add_choice(added, mdl_job_status_names, (int)job->status);
    mdl_json_add_bool(added, "coming", job_is_open(job));
    mdl_json_add_int(added, "received_bytes", job->bytes_received);
    mdl_json_add_int_if(added, "total_bytes", job->bytes_total, job->bytes_total > 0);
    mdl_present_size(added, "received", job->bytes_received);
    if (job->bytes_total > 0) {
        mdl_present_size(added, "total", job->bytes_total);
    }
    mdl_present_date(added, "finished", job->finished_at);
    if (job->error_code != NULL) {
        mdl_import_error_add(added, job->error_code, job->error_message);
    }
}

static void file_add_packs(mdl_json_t *to, const apr_array_header_t *packs)
{
    mdl_json_t *array = mdl_json_add_array(to, "packs");

    for (int i = 0; i < packs->nelts; i++) {
        const mdl_asset_user_t *each = APR_ARRAY_IDX(packs, i, const mdl_asset_user_t *);
        mdl_json_t *pack = mdl_json_add_object(array, NULL);

        mdl_json_add_int(pack, "pack_id", each->id);
        mdl_json_add_string(pack, "pack_name", each->name);
    }
}

/* Adds whether anything has the file, and the numbers of some orders that wait for it. */
static void file_add_orders(mdl_json_t *to, const mdl_asset_use_t *use, mdl_asset_status_t status)
{
    int n = use->orders->nelts;
    int shown = n > WAITING_SHOWN ? WAITING_SHOWN : n;
    mdl_json_t *array;

    mdl_json_add_bool(to, "is_used", n > 0 || use->mappings->nelts > 0 || use->packs->nelts > 0);
    if (status == MDL_ASSET_READY || n == 0) {
        return;
    }
    mdl_json_add_bool(to, "has_waiting", 1);
    mdl_json_add_int_if(to, "more_waiting", n - shown, n > shown);
    array = mdl_json_add_array(to, "waiting");
    for (int i = 0; i < shown; i++) {
        mdl_json_add_string(mdl_json_add_object(array, NULL), "order_id",
                            APR_ARRAY_IDX(use->orders, i, const char *));
    }
}

/* Adds the version that can be put back. */
static void file_add_former(mdl_json_t *to, const mdl_asset_t *asset)
{
    mdl_json_t *former;

    if (asset->former_version != 0) {
        former = mdl_json_add_object(to, "former");
        mdl_json_add_int(former, "former_version", asset->former_version);
        mdl_present_size(former, "size", asset->former_size);
        mdl_present_date(former, "until", asset->former_until);
    }
}

static void file_add(mdl_json_t *to, const mdl_asset_t *asset, apr_pool_t *p)
{
    mdl_json_add_int(to, "file_id", asset->id);
    mdl_json_add_int(to, "seen", mdl_version(asset->updated_at));
    mdl_json_add_string(to, "title", asset->title);
    mdl_json_add_string(to, "filename", asset->filename);
    mdl_frame_add_choice(mdl_json_add_object(to, "state"), mdl_asset_status_names,
                         (int)asset->status);
    mdl_json_add_string(to, "sha256", asset->sha256);
    if (asset->sha256 != NULL) {
        mdl_present_size(to, "size", asset->size);
    }
    mdl_json_add_int(to, "version", asset->version);
    mdl_json_add_bool(to, "replaced", asset->version > 1);
    if (asset->note != NULL) {
        mdl_product_json_note(mdl_json_add_object(to, "said"), "lines", asset->note, p);
    }
    file_add_former(to, asset);
    mdl_json_add_string(to, "source_url", mdl_source_shown(asset->source_url, p));
    mdl_present_date(to, "created", asset->created_at);
    mdl_present_date(to, "updated", asset->updated_at);
}

/* Adds the fields of the forms: what was typed, else what is. */
static void file_add_forms(mdl_json_t *to, const mdl_visit_t *visit, const mdl_asset_t *asset,
                           const apr_array_header_t *categories)
{
    int typed = mdl_visit_field(visit, "title") != NULL ||
                mdl_visit_field(visit, "filename") != NULL;

    mdl_json_add_bool(to, "typed_names", typed);
    mdl_json_add_string(to, "typed_title", typed ? mdl_visit_field(visit, "title") : asset->title);
    mdl_json_add_string(to, "typed_filename",
                        typed ? mdl_visit_field(visit, "filename") : asset->filename);
    mdl_json_add_string(to, "typed_source_url", mdl_visit_field(visit, "source_url"));
    mdl_files_add_categories(to, categories,
                             typed ? mdl_identifier_parse(mdl_visit_field(visit, "category"))
                                   : asset->category_id);
}

static int file_send(mdl_visit_t *visit, int status)
{
    file_t file = {.use = {.ref = mdl_catalog_ref(visit)},
                   .categories = {.shop_id = visit->shop->id,
                                  .before = APR_INT64_MAX,
                                  .limit = MDL_FILES_CATEGORIES}};
    mdl_problem_t problem = visit->problem; /* of the form */
    const mdl_asset_t *asset;
    mdl_json_t *data;
    apr_status_t rv = mdl_visit_read(visit, file_effect, &file);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    visit->problem = problem;
    asset = file.use.ref.entity;
    data = mdl_frame_data(visit);
    file_add(data, asset, visit->r->pool);
    mdl_catalog_add_products(data, file.use.mappings, visit->r->pool);
    file_add_packs(data, file.use.packs);
    mdl_files_add_reach(data, visit, &file.use);
    file_add_orders(data, &file.use, asset->status);
    if (file.use.job != NULL) {
        file_add_job(data, file.use.job);
    }
    file_add_forms(data, visit, asset, file.categories.found);
    if (job_is_open(file.use.job) && visit->fields == NULL) {
        apr_table_setn(visit->r->headers_out, "Refresh", REFRESH_AFTER);
    }
    return mdl_frame_send(visit, status, "file.html", data, NULL);
}

static int file_show(mdl_visit_t *visit)
{
    return file_send(visit, HTTP_OK);
}

/* --- its forms ------------------------------------------------------------------------------ */

static int file_done(mdl_visit_t *visit, apr_status_t rv)
{
    return mdl_catalog_done(visit, rv, "files", mdl_identifier_parse(visit->argument), file_send);
}

MDL_EFFECT(mdl_asset_change, mdl_asset_change_t *)

static int file_change(mdl_visit_t *visit)
{
    mdl_asset_change_t change = {
        .ref = mdl_catalog_ref(visit),
        .title = mdl_visit_field(visit, "title"),
        .filename = mdl_visit_field(visit, "filename"),
        .set_category = 1,
        .category_id = mdl_identifier_parse(mdl_visit_field(visit, "category"))};
    apr_status_t rv = mdl_files_check_names(visit, change.title != NULL ? change.title : "",
                                            change.filename != NULL ? change.filename : "");

    visit->audit.detail = change.title;
    return file_done(visit, rv == APR_SUCCESS ? mdl_visit_write_seen(
                                                    visit, NULL, mdl_asset_change_effect, &change)
                                              : rv);
}

MDL_EFFECT(mdl_version_queue, mdl_version_t *)

static int file_replace(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = mdl_catalog_ref(visit);
    mdl_version_t version = {.asset_id = ref.id, .versions = ref.versions};
    const char *last_segment = NULL;
    apr_status_t rv = mdl_files_read_source(visit, &version.import, &version.source_url,
                                            &last_segment);

    if (rv == APR_SUCCESS) {
        rv = mdl_files_read_news(visit, &version.news);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_version_queue_effect, &version);
    }
    return rv == APR_SUCCESS && version.news.notify
               ? mdl_frame_redirect(visit,
                                    mdl_frame_path(visit,
                                                   "%" APR_INT64_T_FMT "/files/%" APR_INT64_T_FMT,
                                                   visit->shop->id, ref.id),
                                    "buyers_told")
               : file_done(visit, rv);
}

MDL_EFFECT(mdl_asset_restore, mdl_asset_restore_t *)

static int file_restore(mdl_visit_t *visit)
{
    mdl_asset_restore_t restore = {
        .ref = mdl_catalog_ref(visit),
        .version = mdl_identifier_parse(mdl_visit_field(visit, "version")),
        .quota = visit->service->settings->storage_quota};

    return file_done(visit, mdl_visit_write(visit, mdl_asset_restore_effect, &restore));
}

/* Names the file's newest job, for the audit, too. */
static apr_status_t file_find_job(mdl_db_t *db, mdl_visit_t *visit, mdl_job_control_t *control,
                                  apr_pool_t *p)
{
    mdl_asset_use_t use = {.ref = mdl_catalog_ref(visit)};
    apr_status_t rv = mdl_asset_use_read(db, p, &use);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (use.job == NULL) {
        return APR_ENOENT;
    }
    *control = (mdl_job_control_t){.id = use.job->id,
                                   .shop_id = visit->shop->id,
                                   .rules = visit->service->fraud,
                                   .problem = &visit->problem};
    visit->audit.noun_id = use.job->id;
    return APR_SUCCESS;
}

static apr_status_t file_retry_effect(mdl_db_t *db, apr_pool_t *p, void *visit)
{
    mdl_job_control_t retry;
    apr_status_t rv = file_find_job(db, visit, &retry, p);

    return rv == APR_SUCCESS ? mdl_job_retry(db, p, &retry) : rv;
}

static int file_retry(mdl_visit_t *visit)
{
    return file_done(visit, mdl_visit_write(visit, file_retry_effect, visit));
}

static apr_status_t file_cancel_effect(mdl_db_t *db, apr_pool_t *p, void *visit)
{
    mdl_job_control_t cancel;
    apr_status_t rv = file_find_job(db, visit, &cancel, p);

    return rv == APR_SUCCESS ? mdl_job_cancel(db, p, &cancel) : rv;
}

static int file_cancel(mdl_visit_t *visit)
{
    return file_done(visit, mdl_visit_write(visit, file_cancel_effect, visit));
}

MDL_EFFECT(mdl_asset_delete, mdl_entity_ref_t *)

static int file_delete(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = mdl_catalog_ref(visit);
    apr_status_t rv = mdl_visit_write(visit, mdl_asset_delete_effect, &ref);

    return mdl_catalog_done(visit, rv, "files", 0, file_send);
}

const mdl_page_t mdl_file_pages[] = {
    {"{}/files/{}", "asset", "changed", .sees = MDL_ROLE_READ_ONLY, .get = file_show,
     .acts = MDL_ROLE_STAFF, .post = file_change, .done = "file_changed"},
    {"{}/files/{}/replace", "asset", "version_added", .acts = MDL_ROLE_STAFF, .post = file_replace,
     .max_length = MDL_FILES_FORM_MAX, .done = "file_coming"},
    {"{}/files/{}/restore", "asset", "version_restored", .acts = MDL_ROLE_STAFF,
     .post = file_restore, .done = "file_put_back"},
    {"{}/files/{}/retry", "job", "retried", .acts = MDL_ROLE_STAFF, .post = file_retry,
     .done = "file_coming"},
    {"{}/files/{}/cancel", "job", "cancelled", .acts = MDL_ROLE_STAFF, .post = file_cancel,
     .done = "file_cancelled"},
    {"{}/files/{}/delete", "asset", "deleted", .acts = MDL_ROLE_STAFF, .post = file_delete,
     .done = "file_deleted"},
    {0},
};
