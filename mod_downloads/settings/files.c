#include "settings/files.h"

#include <string.h>

#include <apr_strings.h>

#include "base/http/url.h"
#include "base/text/present.h"
#include "base/text/utf8.h"
#include "child_storage.h"
#include "core/catalog/asset_use.h"
#include "core/catalog/category.h"
#include "core/identifier.h"
#include "settings/catalog.h"
#include "settings/filter.h"
#include "settings/frame.h"
#include "settings/pages.h"

#define LINES 50

/* --- what its pages share ------------------------------------------------------------------- */

void mdl_files_add_categories(mdl_json_t *to, const apr_array_header_t *categories,
                              apr_int64_t chosen)
{
    mdl_json_t *array = mdl_json_add_array(to, "categories");

    mdl_json_add_bool(to, "has_categories", categories->nelts > 0);
    for (int i = 0; i < categories->nelts; i++) {
        const mdl_category_t *each = APR_ARRAY_IDX(categories, i, const mdl_category_t *);
        mdl_json_t *category = mdl_json_add_object(array, NULL);

        mdl_json_add_int(category, "category_id", each->id);
        mdl_json_add_string(category, "category_name", each->name);
        mdl_json_add_bool(category, "chosen", each->id == chosen);
    }
}

apr_status_t mdl_files_read_source(mdl_visit_t *visit, mdl_import_t *import, const char **url,
                                   const char **last_segment)
{
    const mdl_settings_t *settings = visit->service->settings;
    mdl_http_result_t host = MDL_HTTP_URL_INVALID;

    *url = mdl_visit_field(visit, "source_url");
    if (*url != NULL && strlen(*url) <= MDL_IMPORT_URL_MAX) {
        host = mdl_http_url_check(&settings->ingest, *url, NULL, last_segment, visit->r->pool);
    }
    if (host == MDL_HTTP_URL_INVALID) {
        return mdl_problem_set(&visit->problem, 400, "invalid_source",
                               "Give the whole https address of the file, without a password.");
    }
    if (host != MDL_HTTP_OK) {
        return mdl_problem_set(&visit->problem, 422, "source_host_not_allowed",
                               "The operator of this service does not allow imports from there.");
    }
    import->shop_id = visit->shop->id;
    import->secret = visit->service->secret;
    import->max_attempts = settings->ingest_max_attempts;
    import->problem = &visit->problem;
    return mdl_child_storage_admit(visit->r, -1, &visit->problem);
}

apr_status_t mdl_files_read_news(mdl_visit_t *visit, mdl_asset_news_t *news)
{
    const char *note = mdl_visit_field(visit, "note");

    news->note = note != NULL ? mdl_utf8_lines(note, visit->r->pool) : NULL;
    news->notify = mdl_visit_field(visit, "notify") != NULL;
    return news->note == NULL || mdl_utf8_is_lines(news->note, MDL_ASSET_NOTE_MAX)
               ? APR_SUCCESS
               : mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_note",
                                 "A note has up to 1,000 characters.");
}

void mdl_files_add_reach(mdl_json_t *to, const mdl_visit_t *visit, const mdl_asset_use_t *use)
{
    int n = use->orders->nelts;

    mdl_json_add_int(to, "order_count", n);
    mdl_json_add_bool(to, "has_orders", n > 0);
    mdl_json_add_bool(to, "more_orders", n == MDL_ASSET_ORDERS_MAX);
    mdl_json_add_string(to, "typed_note", mdl_visit_field(visit, "note"));
    mdl_json_add_bool(to, "typed_notify", mdl_visit_field(visit, "notify") != NULL);
}

apr_status_t mdl_files_check_names(mdl_visit_t *visit, const char *title, const char *filename)
{
    apr_status_t rv = title != NULL ? mdl_catalog_check_name(visit, title) : APR_SUCCESS;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (filename != NULL && strlen(filename) > MDL_FILENAME_MAX) {
        return mdl_problem_set(&visit->problem, 400, "filename_too_long",
                               "This file name is too long: shorten it to 63 characters.");
    }
    if (filename != NULL && !mdl_asset_filename_valid(filename)) {
        return mdl_problem_set(&visit->problem, 400, "invalid_filename",
                               "Give the file a name, without a folder.");
    }
    return APR_SUCCESS;
}

/* --- the list ------------------------------------------------------------------------------- */

static const mdl_filter_field_t fields[] = {
    {"q", .max = MDL_FILENAME_MAX},
    {"state", .names = mdl_asset_status_names},
    {"category", .max = 19},
    {0},
};

typedef struct {
    mdl_asset_list_t list;
    mdl_list_page_t categories;
    apr_array_header_t *counts; /* out: mdl_asset_count_t */
    mdl_shop_storage_t storage; /* out */
} files_t;

static apr_status_t files_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    files_t *files = arg;
    apr_int64_t shop_id = files->categories.shop_id;
    apr_status_t rv;

    if ((rv = mdl_asset_list(db, p, &files->list)) != APR_SUCCESS ||
        (rv = mdl_asset_count_uses(db, files->list.page.found, &files->counts, p)) != APR_SUCCESS ||
        (rv = mdl_category_page(db, p, &files->categories)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_shop_storage(db, shop_id, NULL, &files->storage, p);
}

static void files_add_line(mdl_json_t *to, const files_t *files, const mdl_asset_t *asset)
{
    mdl_json_add_int(to, "file_id", asset->id);
    mdl_json_add_string(to, "title", asset->title);
    mdl_json_add_string(to, "filename",
                        strcmp(asset->filename, asset->title) != 0 ? asset->filename : NULL);
    mdl_frame_add_choice(to, mdl_asset_status_names, (int)asset->status);
    if (asset->sha256 != NULL) {
        mdl_present_size(to, "size", asset->size);
    }
    mdl_present_date(to, "updated", asset->updated_at);
    for (int i = 0; i < files->counts->nelts; i++) {
        const mdl_asset_count_t *count = &APR_ARRAY_IDX(files->counts, i, mdl_asset_count_t);

        if (count->id == asset->id) {
            mdl_json_add_int_if(to, "products", count->mappings, count->mappings > 0);
            mdl_json_add_int_if(to, "packs", count->packs, count->packs > 0);
        }
    }
}

static void files_add(mdl_json_t *to, const mdl_visit_t *visit, const files_t *files)
{
    const apr_array_header_t *found = files->list.page.found;
    apr_int64_t quota = visit->service->settings->storage_quota;
    mdl_json_t *array = mdl_json_add_array(to, "files");
    int shown = found->nelts > LINES ? LINES : found->nelts;

    mdl_json_add_bool(to, "has_files", shown > 0);
    for (int i = 0; i < shown; i++) {
        files_add_line(mdl_json_add_object(array, NULL), files,
                       APR_ARRAY_IDX(found, i, const mdl_asset_t *));
    }
    if (found->nelts > shown && files->list.prefix != NULL) {
        mdl_json_add_bool(to, "too_many", 1);
    } else if (found->nelts > shown) {
        mdl_json_add_int(to, "before", APR_ARRAY_IDX(found, shown - 1, const mdl_asset_t *)->id);
    }
    mdl_present_size(to, "taken", files->storage.taken);
    if (quota != 0) {
        mdl_present_size(to, "quota", quota);
    }
}

/* Adds what was typed into the form, which was refused. */
static void files_add_typed(mdl_json_t *to, const mdl_visit_t *visit)
{
    mdl_json_add_string(to, "typed_source_url", mdl_visit_field(visit, "source_url"));
    mdl_json_add_string(to, "typed_title", mdl_visit_field(visit, "title"));
    mdl_json_add_string(to, "typed_filename", mdl_visit_field(visit, "filename"));
}

static int files_send(mdl_visit_t *visit, int status)
{
    mdl_filter_t filter;
    mdl_json_t *data;
    apr_status_t rv = mdl_filter_read(&filter, fields, visit);
    files_t files = {.list = {.page = {.shop_id = visit->shop->id,
                                       .before = mdl_visit_before(visit),
                                       .limit = LINES + 1}},
                     .categories = {.shop_id = visit->shop->id,
                                    .before = APR_INT64_MAX,
                                    .limit = MDL_FILES_CATEGORIES}};

    if (rv != APR_SUCCESS) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    files.list.prefix = mdl_filter_value(&filter, "q");
    files.list.status = mdl_filter_value(&filter, "state");
    files.list.category_id = mdl_identifier_parse(mdl_filter_value(&filter, "category"));
    if ((rv = mdl_visit_read(visit, files_effect, &files)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_filter_add(data, &filter);
    files_add(data, visit, &files);
    mdl_files_add_categories(data, files.categories.found, files.list.category_id);
    files_add_typed(data, visit);
    return mdl_frame_send(visit, status, "files.html", data, NULL);
}

static int files_show(mdl_visit_t *visit)
{
    return files_send(visit, HTTP_OK);
}

/* --- a file from a web address -------------------------------------------------------------- */

typedef struct {
    mdl_import_t import;
    mdl_visit_t *visit;
} files_import_t;

static apr_status_t files_import_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    files_import_t *files = arg;
    apr_status_t rv = mdl_import_queue(db, p, &files->import);

    mdl_catalog_note_id(files->visit, files->import.asset.id);
    files->visit->audit.detail = files->import.asset.title;
    return rv;
}

static int files_import(mdl_visit_t *visit)
{
    files_import_t files = {.visit = visit};
    mdl_asset_t *asset = &files.import.asset;
    const char *source_url, *last_segment = NULL;
    apr_status_t rv;

    asset->title = mdl_visit_field(visit, "title");
    asset->filename = mdl_visit_field(visit, "filename");
    rv = mdl_files_read_source(visit, &files.import, &source_url, &last_segment);
    if (rv == APR_SUCCESS) {
        rv = mdl_files_check_names(visit, asset->title, asset->filename);
    }
    if (rv == APR_SUCCESS) {
        asset->source_url = source_url;
        mdl_import_name(asset, last_segment);
        rv = mdl_visit_write(visit, files_import_effect, &files);
    }
    return mdl_catalog_done(visit, rv, "files", asset->id, files_send);
}

const mdl_page_t mdl_file_list_pages[] = {
    {"{}/files", "asset", "imported", .sees = MDL_ROLE_READ_ONLY, .get = files_show,
     .acts = MDL_ROLE_STAFF, .post = files_import, .max_length = MDL_FILES_FORM_MAX,
     .done = "file_imported"},
    {0},
};
