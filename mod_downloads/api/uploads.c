#include "api/uploads.h"

#include <apr_strings.h>

#include "api/assets.h"
#include "api/jobs.h"
#include "api/members.h"
#include "api/routes.h"
#include "api/upload_bytes.h"
#include "child_storage.h"
#include "base/ulid.h"
#include "core/identifier.h"
#include "core/download/signed_url.h"

static apr_status_t uploads_not_found(mdl_request_t *request)
{
    return mdl_problem_set(&request->problem, 404, "upload_not_found", "There is no such upload.");
}

static apr_status_t upload_check_storage(mdl_request_t *request)
{
    return mdl_child_storage() != NULL
               ? APR_SUCCESS
               : mdl_problem_set(&request->problem, 503, "service_unavailable",
                                 "The service can't reach its storage.");
}

/* The URL is the right to write, so only a key that may begin uploads gets it, and only while the
   upload is open. */
static const char *upload_url_of(const mdl_request_t *request, const mdl_upload_t *upload)
{
    const mdl_settings_t *settings = request->service->settings;

    if (settings->upload_url == NULL || request->caller.scope < MDL_KEY_SCOPE_FULL ||
        upload->status != MDL_UPLOAD_OPEN) {
        return NULL;
    }
    return mdl_signed_url_upload(request->service->secret, settings->upload_url, upload->id,
                                 request->r->pool);
}

static void upload_write_members(mdl_json_t *to, const mdl_request_t *request,
                                 const mdl_upload_t *upload, apr_int64_t offset)
{
    mdl_json_t *headers, *protocols;

    mdl_json_add_string(to, "id", upload->id);
    mdl_json_add_string(to, "status", mdl_upload_status_names[upload->status]);
    mdl_json_add_string(to, "filename", upload->filename);
    mdl_json_add_string(to, "title", upload->title);
    mdl_json_add_string(to, "content_type", upload->content_type);
    mdl_json_add_int_if(to, "category_id", upload->category_id, upload->category_id != 0);
    mdl_json_add_int_if(to, "size", upload->size, upload->size >= 0);
    mdl_json_add_string(to, "sha256",
                        upload->sha256 != NULL ? upload->sha256 : upload->expected_sha256);
    mdl_json_add_int(to, "offset", offset);
    mdl_json_add_string(to, "upload_url", upload_url_of(request, upload));
    mdl_json_add_string(to, "method", "PUT");
    headers = mdl_json_add_object(to, "headers");
    mdl_json_add_string(headers, "Content-Type",
                        upload->content_type != NULL ? upload->content_type
                                                     : "application/octet-stream");
    protocols = mdl_json_add_array(to, "protocols");
    mdl_json_add_string(protocols, NULL, "put");
    mdl_json_add_string(protocols, NULL, "tus-1.0.0");
    mdl_json_add_int(to, "max_size",
                     upload->size >= 0 ? upload->size
                                       : request->service->settings->upload_max_size);
    mdl_json_add_int_if(to, "asset_id", upload->asset_id, upload->asset_id != 0);
    mdl_json_add_time(to, "created_at", upload->created_at);
    mdl_json_add_time(to, "updated_at", upload->updated_at);
    mdl_json_add_time(to, "expires_at", upload->expires_at);
}

static apr_status_t upload_check_size(mdl_request_t *request, mdl_members_t *members,
                                      apr_int64_t size)
{
    const mdl_settings_t *settings = request->service->settings;

    if (size <= settings->upload_max_size) {
        return APR_SUCCESS;
    }
    mdl_members_fault(members, "size", "too_large", "The file is larger than this service takes.");
    mdl_problem_count(&request->problem, settings->upload_max_size, size);
    return mdl_problem_set(&request->problem, 413, "request_too_large",
                           apr_psprintf(request->r->pool,
                                        "A file may have at most %" APR_INT64_T_FMT " bytes.",
                                        settings->upload_max_size));
}

static apr_status_t upload_parse_begin(mdl_request_t *request)
{
    const mdl_settings_t *settings = request->service->settings;
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_upload_begin_t *begin = apr_pcalloc(request->r->pool, sizeof *begin);
    mdl_upload_t *upload = &begin->upload;
    apr_status_t rv;

    upload->filename = mdl_asset_filename(members, MDL_REQUIRED);
    upload->title = mdl_asset_title(members, MDL_OPTIONAL);
    upload->content_type = mdl_asset_content_type(members, MDL_OPTIONAL);
    upload->category_id = mdl_asset_category_id(members);
    upload->size = mdl_members_int(members, "size", MDL_OPTIONAL, 0, MDL_IDENTIFIER_MAX, -1);
    upload->expected_sha256 = mdl_asset_sha256(members, request->r->pool);
    if ((rv = mdl_members_end(members)) != APR_SUCCESS ||
        (rv = upload_check_size(request, members, upload->size)) != APR_SUCCESS) {
        return rv;
    }
    if (settings->upload_url == NULL) {
        return mdl_problem_set(&request->problem, 503, "service_unavailable",
                               "Direct uploads are not set up: the operator has to set "
                               "DownloadsUploadURL.");
    }
    if (upload->title == NULL) {
        upload->title = upload->filename;
    }
    upload->shop_id = request->caller.shop_id;
    begin->lifetime = settings->upload_lifetime;
    begin->max_open = settings->upload_max_open;
    begin->quota = settings->storage_quota;
    begin->problem = &request->problem;
    request->arg = begin;
    rv = upload_check_storage(request);
    return rv == APR_SUCCESS ? mdl_child_storage_admit(request->r, upload->size, &request->problem)
                             : rv;
}

static void upload_write_begin(mdl_request_t *request)
{
    const mdl_upload_t *upload = &((mdl_upload_begin_t *)request->arg)->upload;

    request->entity_id = upload->id;
    request->status = 201;
    request->location = apr_pstrcat(request->r->pool, request->root, "/assets/uploads/", upload->id,
                                    NULL);
    upload_write_members(request->response, request, upload, 0);
}

MDL_EFFECT(mdl_upload_begin, mdl_upload_begin_t *)

static apr_status_t upload_parse_get(mdl_request_t *request)
{
    mdl_upload_get_t *get = apr_pcalloc(request->r->pool, sizeof *get);

    get->id = request->parameters[0];
    get->shop_id = request->caller.shop_id;
    get->versions = request->versions;
    get->storage = mdl_child_storage();
    get->problem = &request->problem;
    request->arg = get;
    return mdl_ulid_valid("upl_", get->id) ? upload_check_storage(request)
                                           : uploads_not_found(request);
}

static void upload_write_get(mdl_request_t *request)
{
    const mdl_upload_get_t *get = request->arg;

    upload_write_members(request->response, request, get->upload, get->offset);
}

MDL_EFFECT(mdl_upload_get, mdl_upload_get_t *)

static apr_status_t upload_parse_abort(mdl_request_t *request)
{
    apr_status_t rv = mdl_members_none(request);

    return rv == APR_SUCCESS ? upload_parse_get(request) : rv;
}

static void upload_write_abort(mdl_request_t *request)
{
    request->status = HTTP_NO_CONTENT;
}

MDL_EFFECT(mdl_upload_abort, mdl_upload_get_t *)

apr_status_t mdl_upload_prepare(mdl_request_t *request, mdl_upload_complete_t *complete,
                                const char *id)
{
    const mdl_settings_t *settings = request->service->settings;
    apr_status_t rv;

    complete->id = id;
    complete->shop_id = request->caller.shop_id;
    complete->versions = request->versions;
    complete->storage = mdl_child_storage();
    complete->quota = settings->storage_quota;
    complete->max_attempts = settings->ingest_max_attempts;
    complete->problem = &request->problem;
    rv = upload_check_storage(request);
    if (rv == APR_SUCCESS) {
        rv = mdl_upload_bytes_finish(request, id, complete->shop_id);
    }
    return rv == APR_SUCCESS ? mdl_upload_sync(complete, request->r->pool) : rv;
}

void mdl_upload_write_asset(mdl_request_t *request, const mdl_upload_complete_t *complete)
{
    mdl_asset_write(request, complete->asset);
    if (complete->job == NULL) {
        mdl_json_add_null(request->response, "job");
    } else {
        request->status = 202;
        request->location = apr_pstrcat(request->r->pool, request->root, "/jobs/",
                                        complete->job->id, NULL);
        mdl_job_write(request, complete->job);
    }
}

static apr_status_t upload_parse_complete(mdl_request_t *request)
{
    mdl_upload_complete_t *complete = apr_pcalloc(request->r->pool, sizeof *complete);
    const char *id = request->parameters[0];
    apr_status_t rv = mdl_members_none(request);

    request->arg = complete;
    if (rv == APR_SUCCESS && !mdl_ulid_valid("upl_", id)) {
        return uploads_not_found(request);
    }
    return rv == APR_SUCCESS ? mdl_upload_prepare(request, complete, id) : rv;
}

static void upload_write_complete(mdl_request_t *request)
{
    const mdl_upload_complete_t *complete = request->arg;

    if (!complete->repeated) {
        request->status = 201;
        request->location = apr_psprintf(request->r->pool, "%s/assets/%" APR_INT64_T_FMT,
                                         request->root, complete->asset->id);
    }
    mdl_upload_write_asset(request, complete);
}

MDL_EFFECT(mdl_upload_complete, mdl_upload_complete_t *)

const mdl_route_t mdl_upload_routes[] = {
    {"POST", "/assets/uploads", "upload", "begun", .versioned = 1, .parse = upload_parse_begin,
     .effect = mdl_upload_begin_effect, .write = upload_write_begin},
    {"GET", "/assets/uploads/{}", .versioned = 1, .parse = upload_parse_get,
     .effect = mdl_upload_get_effect, .write = upload_write_get},
    {"DELETE", "/assets/uploads/{}", "upload", "aborted", .versioned = 1, .optional_body = 1,
     .parse = upload_parse_abort, .effect = mdl_upload_abort_effect, .write = upload_write_abort},
    {"POST", "/assets/uploads/{}/complete", "upload", "completed", .versioned = 1,
     .optional_body = 1, .parse = upload_parse_complete, .effect = mdl_upload_complete_effect,
     .write = upload_write_complete},
    {0},
};
