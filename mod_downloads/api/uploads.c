#include "api/uploads.h"

#include <string.h>

#include <apr_strings.h>

#include "api/assets.h"
#include "api/jobs.h"
#include "api/members.h"
#include "child_storage.h"
#include "base/ulid.h"
#include "core/download/signed_url.h"

#define MAX_INT ((APR_INT64_C(1) << 53) - 1)

static apr_status_t not_found(mdl_call_t *call)
{
    return mdl_refuse(&call->refusal, 404, "upload_not_found", "There is no such upload.");
}

static apr_status_t check_storage(mdl_call_t *call)
{
    return mdl_child_storage() != NULL ? APR_SUCCESS
                                       : mdl_refuse(&call->refusal, 503, "service_unavailable",
                                                    "The service can't reach its storage.");
}

/* The address is the right to write: only who could have begun the upload gets it, and only while
   there is something to write. */
static const char *url_of(const mdl_call_t *call, const mdl_upload_t *upload)
{
    const mdl_settings_t *settings = call->service->settings;

    if (settings->upload_url == NULL || call->caller.read_only ||
        strcmp(upload->status, MDL_UPLOAD_OPEN) != 0) {
        return NULL;
    }
    return mdl_capability_upload_url(call->service->secret, settings->upload_url, upload->id,
                                     call->r->pool);
}

static void write_upload(mdl_json_t *to, const mdl_call_t *call, const mdl_upload_t *upload,
                         apr_int64_t offset)
{
    mdl_json_t *headers, *protocols;

    mdl_json_add_string(to, "id", upload->id);
    mdl_json_add_string(to, "status", upload->status);
    mdl_json_add_string(to, "filename", upload->filename);
    mdl_json_add_string(to, "title", upload->title);
    mdl_json_add_string(to, "content_type", upload->content_type);
    mdl_json_add_int_if(to, "category_id", upload->category_id, upload->category_id != 0);
    mdl_json_add_int_if(to, "size", upload->size, upload->size >= 0);
    mdl_json_add_string(to, "sha256",
                        upload->sha256 != NULL ? upload->sha256 : upload->expected_sha256);
    mdl_json_add_int(to, "offset", offset);
    mdl_json_add_string(to, "upload_url", url_of(call, upload));
    mdl_json_add_string(to, "method", "PUT");
    headers = mdl_json_add_object(to, "headers");
    mdl_json_add_string(headers, "Content-Type",
                        upload->content_type != NULL ? upload->content_type
                                                     : "application/octet-stream");
    protocols = mdl_json_add_array(to, "protocols");
    mdl_json_add_string(protocols, NULL, "put");
    mdl_json_add_string(protocols, NULL, "tus-1.0.0");
    mdl_json_add_int(to, "max_size",
                     upload->size >= 0 ? upload->size : call->service->settings->upload_max_size);
    mdl_json_add_int_if(to, "asset_id", upload->asset_id, upload->asset_id != 0);
    mdl_json_add_time(to, "created_at", upload->created_at);
    mdl_json_add_time(to, "expires_at", upload->expires_at);
}

/* To begin. */

static apr_status_t check_size(mdl_call_t *call, mdl_members_t *members, apr_int64_t size)
{
    const mdl_settings_t *settings = call->service->settings;

    if (size <= settings->upload_max_size) {
        return APR_SUCCESS;
    }
    mdl_members_fault(members, "size", "too_large", "The file is larger than this service takes.");
    return mdl_refuse(&call->refusal, 413, "request_too_large",
                      apr_psprintf(call->r->pool,
                                   "A file may have at most %" APR_INT64_T_FMT " bytes.",
                                   settings->upload_max_size));
}

static apr_status_t parse_begin(mdl_call_t *call)
{
    const mdl_settings_t *settings = call->service->settings;
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_upload_begin_t *begin = apr_pcalloc(call->r->pool, sizeof *begin);
    mdl_upload_t *upload = &begin->upload;
    apr_status_t rv;

    upload->filename = mdl_asset_filename(members, MDL_REQUIRED);
    upload->title = mdl_asset_title(members, MDL_OPTIONAL);
    upload->content_type = mdl_asset_content_type(members);
    upload->category_id = mdl_asset_category_id(members);
    upload->size = mdl_members_int(members, "size", 0, MAX_INT, -1);
    upload->expected_sha256 = mdl_asset_sha256(members, call->r->pool);
    if ((rv = mdl_members_end(members)) != APR_SUCCESS ||
        (rv = check_size(call, members, upload->size)) != APR_SUCCESS) {
        return rv;
    }
    if (settings->upload_url == NULL) {
        return mdl_refuse(&call->refusal, 503, "service_unavailable",
                          "Direct uploads are not set up: the operator has to set "
                          "DownloadsUploadURL.");
    }
    if (upload->title == NULL) {
        upload->title = upload->filename;
    }
    upload->shop_id = call->caller.shop_id;
    begin->lifetime = settings->upload_lifetime;
    begin->quota = settings->storage_quota;
    begin->refusal = &call->refusal;
    call->arg = begin;
    return check_storage(call);
}

static void write_begin(mdl_call_t *call)
{
    const mdl_upload_t *upload = &((mdl_upload_begin_t *)call->arg)->upload;

    call->status = 201;
    call->location = apr_pstrcat(call->r->pool, call->root, "/assets/uploads/", upload->id, NULL);
    write_upload(mdl_json_add_object(call->answer, "upload"), call, upload, 0);
}

const mdl_route_t mdl_route_upload_begin = {
    .method = "POST",
    .path = "/assets/uploads",
    .parse = parse_begin,
    .effect = mdl_upload_begin,
    .write = write_begin,
};

/* To look at it and to abort it. */

static apr_status_t parse_get(mdl_call_t *call)
{
    mdl_upload_get_t *get = apr_pcalloc(call->r->pool, sizeof *get);

    get->id = call->parameters[0];
    get->shop_id = call->caller.shop_id;
    get->storage = mdl_child_storage();
    get->refusal = &call->refusal;
    call->arg = get;
    return mdl_ulid_valid("upl_", get->id) ? check_storage(call) : not_found(call);
}

static void write_get(mdl_call_t *call)
{
    const mdl_upload_get_t *get = call->arg;

    write_upload(call->answer, call, get->upload, get->offset);
}

const mdl_route_t mdl_route_upload = {
    .method = "GET",
    .path = "/assets/uploads/{}",
    .parse = parse_get,
    .effect = mdl_upload_get,
    .write = write_get,
};

static apr_status_t parse_abort(mdl_call_t *call)
{
    apr_status_t rv = mdl_members_none(call);

    return rv == APR_SUCCESS ? parse_get(call) : rv;
}

static void write_abort(mdl_call_t *call)
{
    call->status = HTTP_NO_CONTENT;
}

const mdl_route_t mdl_route_upload_abort = {
    .method = "DELETE",
    .path = "/assets/uploads/{}",
    .optional_body = 1,
    .parse = parse_abort,
    .effect = mdl_upload_abort,
    .write = write_abort,
};

/* To complete. */

apr_status_t mdl_upload_prepare(mdl_call_t *call, mdl_upload_complete_t *complete, const char *id)
{
    const mdl_settings_t *settings = call->service->settings;

    complete->id = id;
    complete->shop_id = call->caller.shop_id;
    complete->storage = mdl_child_storage();
    complete->quota = settings->storage_quota;
    complete->max_attempts = settings->ingest_max_attempts;
    complete->refusal = &call->refusal;
    return check_storage(call);
}

void mdl_upload_write_asset(mdl_call_t *call, const mdl_upload_complete_t *complete)
{
    mdl_asset_write(call, complete->asset);
    if (complete->job != NULL) {
        call->status = 202;
        call->location = apr_pstrcat(call->r->pool, call->root, "/jobs/", complete->job->id, NULL);
        mdl_job_write(call, complete->job);
    }
}

static apr_status_t parse_complete(mdl_call_t *call)
{
    mdl_upload_complete_t *complete = apr_pcalloc(call->r->pool, sizeof *complete);
    const char *id = call->parameters[0];
    apr_status_t rv = mdl_members_none(call);

    call->arg = complete;
    if (rv == APR_SUCCESS && !mdl_ulid_valid("upl_", id)) {
        return not_found(call);
    }
    return rv == APR_SUCCESS ? mdl_upload_prepare(call, complete, id) : rv;
}

static void write_complete(mdl_call_t *call)
{
    const mdl_upload_complete_t *complete = call->arg;

    if (!complete->repeated) {
        call->status = 201;
        call->location = apr_psprintf(call->r->pool, "%s/assets/%" APR_INT64_T_FMT, call->root,
                                      complete->asset->id);
    }
    mdl_upload_write_asset(call, complete);
}

const mdl_route_t mdl_route_upload_complete = {
    .method = "POST",
    .path = "/assets/uploads/{}/complete",
    .wakes = 1,
    .optional_body = 1,
    .parse = parse_complete,
    .effect = mdl_upload_complete,
    .write = write_complete,
};
