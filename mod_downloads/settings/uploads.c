#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/names.h"
#include "base/text/present.h"
#include "base/ulid.h"
#include "child_storage.h"
#include "core/catalog/asset_use.h"
#include "core/catalog/upload.h"
#include "core/download/signed_url.h"
#include "core/identifier.h"
#include "settings/files.h"
#include "settings/frame.h"

/* What upload/ and the pages below say was wrong; a word for each. */
static const char *const problems[] = {"upload_form_faulty",
                                       "upload_form_file",
                                       "upload_form_name",
                                       "upload_form_title",
                                       "storage_quota_exceeded",
                                       "insufficient_storage",
                                       "upload_gone",
                                       "upload_finished",
                                       "upload_locked",
                                       "request_too_large",
                                       "shop_blocked",
                                       "too_many_uploads",
                                       "shop_not_approved",
                                       "invalid_note",
                                       "upload_not_possible",
                                       "other",
                                       NULL};

static const char *uploads_page(const mdl_visit_t *visit)
{
    return apr_psprintf(visit->r->pool, "%" APR_INT64_T_FMT "/files/uploads", visit->shop->id);
}

/* Whether a script asks, which gets JSON. */
static int uploads_wants_json(const mdl_visit_t *visit)
{
    const char *accept = apr_table_get(visit->r->headers_in, "Accept");

    return accept != NULL && strncmp(accept, "application/json", 16) == 0;
}

/* --- the page and its list --- */

/* The file that is to be replaced; 0: none. */
static apr_int64_t uploads_replaces(const mdl_visit_t *visit)
{
    const char *field = mdl_visit_field(visit, "replaces");

    return mdl_identifier_parse(field != NULL ? field : mdl_visit_parameter(visit, "replaces"));
}

static const char *uploads_url(const mdl_visit_t *visit, const char *id)
{
    return mdl_signed_url_upload(visit->service->secret, visit->service->settings->upload_url, id,
                                 visit->r->pool);
}

/* What was wrong, for the words "upload_problem", and for a script all that can be. */
static void uploads_add_problem(mdl_json_t *data, const char *code)
{
    mdl_json_t *codes = mdl_json_add_array(data, "codes");

    if (code != NULL) {
        mdl_json_add_string(data, "upload_problem",
                            mdl_names_find(problems, code) >= 0 ? code : "other");
    }
    for (int i = 0; problems[i] != NULL; i++) {
        mdl_json_add_string(mdl_json_add_object(codes, NULL), "code", problems[i]);
    }
}

static void uploads_add(mdl_json_t *uploads, const mdl_visit_t *visit, const mdl_upload_t *upload)
{
    mdl_json_t *to = mdl_json_add_object(uploads, NULL);

    mdl_json_add_string(to, "upload_id", upload->id);
    mdl_json_add_string(to, "upload_url", uploads_url(visit, upload->id));
    mdl_json_add_string(to, "file_name", upload->filename);
    mdl_json_add_string(to, "begun_by", upload->begun_by);
    mdl_json_add_int(to, "file_size", upload->size);
    mdl_json_add_int(to, "modified", upload->modified);
    mdl_json_add_int(to, "replaces_id", upload->replaces);
    mdl_present_size(to, "size", upload->size);
    mdl_present_date(to, "expires", upload->expires_at);
}

/* Adds the file that is to be replaced.  APR_ENOENT when there is none. */
typedef struct {
    mdl_upload_begun_t begun;
    mdl_asset_use_t use;
} uploads_look_t;

static apr_status_t uploads_look_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    uploads_look_t *look = arg;
    apr_status_t rv = mdl_upload_begun(db, p, &look->begun);

    return rv == APR_SUCCESS && look->use.ref.id != 0 ? mdl_asset_use_read(db, p, &look->use) : rv;
}

static int uploads_send(mdl_visit_t *visit, int status)
{
    uploads_look_t look = {.begun = {.shop_id = visit->shop->id},
                           .use.ref = {.shop_id = visit->shop->id,
                                       .id = uploads_replaces(visit),
                                       .problem = &visit->problem}};
    const mdl_asset_t *asset;
    const char *problem = visit->problem.message != NULL ? visit->problem.code : NULL;
    apr_status_t rv = mdl_visit_read(visit, uploads_look_effect, &look);
    mdl_json_t *data, *uploads;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    uploads_add_problem(data, problem);
    mdl_json_add_bool(data, "may_upload",
                      visit->shop->status == MDL_SHOP_APPROVED && visit->shop->blocked_at == 0 &&
                          visit->service->settings->upload_url != NULL);
    if ((asset = look.use.ref.entity) != NULL) {
        mdl_json_add_int(data, "replaces", asset->id);
        mdl_json_add_string(data, "replaced_title", asset->title);
        mdl_files_add_reach(data, visit, &look.use);
    }
    uploads = mdl_json_add_array(data, "uploads");
    for (int i = 0; i < look.begun.uploads->nelts; i++) {
        uploads_add(uploads, visit, APR_ARRAY_IDX(look.begun.uploads, i, const mdl_upload_t *));
    }
    mdl_json_add_bool(data, "has_uploads", look.begun.uploads->nelts > 0);
    return mdl_frame_send(visit, status, "uploads.html", data, NULL);
}

static int uploads_show(mdl_visit_t *visit)
{
    return uploads_wants_json(visit)
               ? mdl_frame_answer(visit, HTTP_OK, mdl_json_object(visit->r->pool))
               : uploads_send(visit, HTTP_OK);
}

/* --- beginning --- */

static apr_status_t uploads_refuse(mdl_visit_t *visit, int status, const char *code,
                                   const char *message)
{
    return mdl_problem_set(&visit->problem, status, code, message);
}

/* What a script tells of its file. */
static apr_status_t uploads_take_file(mdl_visit_t *visit, mdl_upload_t *upload)
{
    const char *name = mdl_visit_field(visit, "name");
    const char *size = mdl_visit_field(visit, "size");

    if (name != NULL && strlen(name) > MDL_FILENAME_MAX) {
        return uploads_refuse(visit, HTTP_BAD_REQUEST, "upload_form_name",
                              "The file’s name is too long: shorten it to 63 characters.");
    }
    if (name == NULL || !mdl_asset_filename_valid(name)) {
        return uploads_refuse(visit, HTTP_BAD_REQUEST, "upload_form_file",
                              "A file has a name, without a folder.");
    }
    upload->filename = upload->title = name;
    upload->size = mdl_identifier_parse(size);
    upload->modified = mdl_identifier_parse(mdl_visit_field(visit, "modified"));
    if (upload->size == 0 && (size == NULL || strcmp(size, "0") != 0)) {
        return uploads_refuse(visit, HTTP_BAD_REQUEST, "upload_form_file",
                              "The size of a file is a number of bytes.");
    }
    return upload->size <= visit->service->settings->upload_max_size
               ? APR_SUCCESS
               : uploads_refuse(visit, HTTP_REQUEST_ENTITY_TOO_LARGE, "request_too_large",
                                "The file is larger than this service takes.");
}

static apr_status_t uploads_prepare(mdl_visit_t *visit, mdl_upload_begin_t *begin)
{
    const mdl_settings_t *settings = visit->service->settings;
    mdl_upload_t *upload = &begin->upload;

    *begin = (mdl_upload_begin_t){.lifetime = settings->upload_lifetime,
                                  .max_open = settings->upload_max_open,
                                  .quota = settings->storage_quota,
                                  .upload = {.shop_id = visit->shop->id,
                                             .begun_by = visit->user,
                                             .replaces = uploads_replaces(visit)},
                                  .problem = &visit->problem};
    if (visit->shop->status != MDL_SHOP_APPROVED) {
        return uploads_refuse(visit, HTTP_FORBIDDEN, "shop_not_approved",
                              "The shop has to be approved first.");
    }
    if (settings->upload_url == NULL || mdl_child_storage() == NULL) {
        return uploads_refuse(visit, HTTP_SERVICE_UNAVAILABLE, "upload_not_possible",
                              "Uploads are not set up: ask the operator of this service.");
    }
    if (upload->replaces != 0) {
        mdl_asset_news_t news;
        apr_status_t rv = mdl_files_read_news(visit, &news);

        if (rv != APR_SUCCESS) {
            return rv;
        }
        upload->note = news.note;
        upload->notify = news.notify;
    }
    if (uploads_wants_json(visit)) {
        return uploads_take_file(visit, upload);
    }
    /* The form tells its file's name and size. */
    upload->filename = upload->title = "file";
    upload->size = -1;
    upload->returns_to = uploads_page(visit);
    return APR_SUCCESS;
}

typedef struct {
    mdl_upload_begin_t begin;
    mdl_visit_t *visit;
} uploads_begin_t;

static apr_status_t uploads_begin_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    uploads_begin_t *uploads = arg;
    mdl_upload_t *upload = &uploads->begin.upload;
    mdl_asset_t *asset;
    apr_status_t rv = APR_SUCCESS;

    if (upload->replaces != 0) {
        rv = mdl_asset_find(db, upload->shop_id, upload->replaces, &asset, uploads->begin.problem,
                            p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_upload_begin(db, p, &uploads->begin);
    }
    uploads->visit->audit.noun_id = upload->id;
    uploads->visit->audit.detail = upload->returns_to == NULL ? upload->title : NULL;
    return rv;
}

static int uploads_answer_problem(mdl_visit_t *visit, apr_status_t rv)
{
    mdl_json_t *data = mdl_json_object(visit->r->pool);

    if (rv != MDL_EPROBLEM) {
        return mdl_frame_failure(visit, rv);
    }
    mdl_json_add_string(data, "problem", visit->problem.code);
    mdl_json_add_string(data, "message", visit->problem.message);
    return mdl_frame_answer(visit, visit->problem.status, data);
}

static int uploads_begin(mdl_visit_t *visit)
{
    uploads_begin_t uploads = {.visit = visit};
    const char *id;
    mdl_json_t *data;
    apr_status_t rv = uploads_prepare(visit, &uploads.begin);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, uploads_begin_effect, &uploads);
    }
    id = uploads.begin.upload.id;
    if (!uploads_wants_json(visit)) {
        return rv == APR_SUCCESS
                   ? mdl_frame_redirect(
                         visit, mdl_frame_path(visit, "%s/%s", uploads_page(visit), id), NULL)
               : rv == MDL_EPROBLEM && visit->problem.status != HTTP_NOT_FOUND
                   ? uploads_send(visit, visit->problem.status)
                   : mdl_frame_failure(visit, rv);
    }
    if (rv != APR_SUCCESS) {
        return uploads_answer_problem(visit, rv);
    }
    data = mdl_json_object(visit->r->pool);
    mdl_json_add_string(data, "upload_id", id);
    mdl_json_add_string(data, "upload_url", uploads_url(visit, id));
    mdl_json_add_string(data, "complete",
                        mdl_frame_path(visit, "%s/%s/complete", uploads_page(visit), id));
    return mdl_frame_answer(visit, HTTP_CREATED, data);
}

/* --- one upload --- */

MDL_EFFECT(mdl_upload_get, mdl_upload_get_t *)

/* The upload that the path names, if a member of the shop has begun it. */
static apr_status_t uploads_find(mdl_visit_t *visit, mdl_upload_get_t *get)
{
    apr_status_t rv;

    *get = (mdl_upload_get_t){.id = visit->argument,
                              .shop_id = visit->shop->id,
                              .storage = mdl_child_storage(),
                              .problem = &visit->problem};
    if (!mdl_ulid_valid("upl_", get->id) || get->storage == NULL) {
        return APR_ENOENT;
    }
    rv = mdl_visit_read(visit, mdl_upload_get_effect, get);
    return rv == APR_SUCCESS && get->upload->begun_by == NULL ? APR_ENOENT : rv;
}

MDL_EFFECT(mdl_asset_use_read, mdl_asset_use_t *)

/* Adds how many are told of the version that the upload has brought, if any are. */
static apr_status_t uploads_add_told(mdl_json_t *to, mdl_visit_t *visit, const mdl_upload_t *upload)
{
    mdl_problem_t problem = {0};
    mdl_asset_use_t use = {
        .ref = {.shop_id = visit->shop->id, .id = upload->asset_id, .problem = &problem}};
    apr_status_t rv;

    if (upload->status != MDL_UPLOAD_COMPLETED || !upload->notify) {
        return APR_SUCCESS;
    }
    rv = mdl_visit_read(visit, mdl_asset_use_read_effect, &use);
    if (rv == APR_SUCCESS) {
        mdl_files_add_reach(to, visit, &use);
        mdl_json_add_bool(to, "buyers_told", 1);
    }
    return rv == MDL_EPROBLEM || rv == APR_ENOENT ? APR_SUCCESS : rv; /* the file was deleted */
}

/* An upload that is over with what it became, else the form that brings its file. */
static int uploads_show_one(mdl_visit_t *visit)
{
    mdl_upload_get_t get;
    const mdl_upload_t *upload;
    mdl_json_t *data;
    apr_status_t rv = uploads_find(visit, &get);

    if (rv == MDL_EPROBLEM || rv == APR_ENOENT) {
        uploads_refuse(visit, HTTP_GONE, "upload_gone",
                       "This upload has expired or was cancelled: begin it again.");
        return uploads_send(visit, HTTP_GONE);
    }
    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    upload = get.upload;
    if (upload->status == MDL_UPLOAD_ABORTED ||
        (upload->status == MDL_UPLOAD_OPEN && upload->returns_to == NULL)) {
        return mdl_frame_redirect(visit, mdl_frame_path(visit, "%s", uploads_page(visit)), NULL);
    }
    data = mdl_frame_data(visit);
    uploads_add_problem(data, mdl_visit_parameter(visit, "problem"));
    mdl_json_add_bool(data, "open", upload->status == MDL_UPLOAD_OPEN);
    mdl_json_add_string(data, "upload_url", uploads_url(visit, upload->id));
    mdl_json_add_string(data, "upload_id", upload->id);
    mdl_json_add_string(data, "file_name", upload->filename);
    mdl_json_add_string(data, "file_title", upload->title);
    mdl_json_add_int(data, "asset_id", upload->asset_id);
    mdl_present_size(data, "size", upload->size);
    mdl_present_size(data, "most", visit->service->settings->upload_max_size);
    if ((rv = uploads_add_told(data, visit, upload)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    return mdl_frame_send(visit, HTTP_OK, "upload.html", data, NULL);
}

/* --- its end --- */

static int uploads_end(mdl_visit_t *visit, apr_status_t rv, mdl_json_t *data)
{
    if (!uploads_wants_json(visit)) {
        return mdl_frame_done(visit, rv, "files/uploads");
    }
    return rv == APR_SUCCESS ? mdl_frame_answer(visit, HTTP_OK, data)
                             : uploads_answer_problem(visit, rv);
}

MDL_EFFECT(mdl_upload_complete, mdl_upload_complete_t *)

static int uploads_complete(mdl_visit_t *visit)
{
    const mdl_settings_t *settings = visit->service->settings;
    mdl_json_t *data = mdl_json_object(visit->r->pool);
    mdl_upload_complete_t complete = {.id = visit->argument,
                                      .shop_id = visit->shop->id,
                                      .storage = mdl_child_storage(),
                                      .quota = settings->storage_quota,
                                      .max_attempts = settings->ingest_max_attempts,
                                      .problem = &visit->problem};
    mdl_upload_get_t get;
    apr_status_t rv = uploads_find(visit, &get);

    if (rv == APR_SUCCESS) {
        complete.asset_id = get.upload->replaces;
        visit->audit.detail = get.upload->title;
        mdl_visit_end(visit);
        rv = mdl_upload_sync(&complete, visit->r->pool);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_upload_complete_effect, &complete);
    }
    if (rv == APR_SUCCESS) {
        mdl_json_add_int(data, "asset_id", complete.asset->id);
        mdl_json_add_bool(data, "told", get.upload->notify);
    }
    return uploads_end(visit, rv, data);
}

MDL_EFFECT(mdl_upload_abort, mdl_upload_get_t *)

static int uploads_abort(mdl_visit_t *visit)
{
    mdl_upload_get_t get;
    apr_status_t rv = uploads_find(visit, &get);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_upload_abort_effect, &get);
    }
    if (rv == APR_SUCCESS) {
        mdl_partial_remove(get.storage, get.id, visit->r->pool);
    }
    return uploads_end(visit, rv, mdl_json_object(visit->r->pool));
}

const mdl_page_t mdl_upload_pages[] = {
    {"{}/files/uploads", "upload", "begun", .sees = MDL_ROLE_STAFF, .get = uploads_show,
     .acts = MDL_ROLE_STAFF, .post = uploads_begin, .allows = MDL_ALLOW_UPLOADS},
    {"{}/files/uploads/{}", .sees = MDL_ROLE_STAFF, .get = uploads_show_one,
     .allows = MDL_ALLOW_UPLOADS},
    {"{}/files/uploads/{}/complete", "upload", "completed", .acts = MDL_ROLE_STAFF,
     .post = uploads_complete, .done = "uploaded"},
    {"{}/files/uploads/{}/abort", "upload", "aborted", .acts = MDL_ROLE_STAFF,
     .post = uploads_abort, .done = "upload_cancelled"},
    {0},
};
