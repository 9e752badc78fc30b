#include "api/assets.h"

#include <string.h>

#include <apr_strings.h>

#include "api/jobs.h"
#include "api/members.h"
#include "base/media_type.h"
#include "core/import.h"

#define MAX_URL      2048
#define MAX_FILENAME 255
#define MAX_TITLE    255

/* A name without a way out of a folder: what a customer's browser will save it as. */
static int filename_valid(const char *name)
{
    return strpbrk(name, "/\\") == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static const char *sha256_of(mdl_members_t *members, apr_pool_t *p)
{
    const char *text = mdl_members_text(members, "sha256", MDL_OPTIONAL, 64);

    if (text != NULL && (strlen(text) != 64 || strspn(text, "0123456789abcdefABCDEF") != 64)) {
        mdl_members_fault(members, "sha256", "invalid",
                          "This member must be 64 hexadecimal digits.");
        return NULL;
    }
    if (text != NULL) {
        char *lower = apr_pstrdup(p, text);

        ap_str_tolower(lower);
        text = lower;
    }
    return text;
}

static mdl_http_result_t check_url(mdl_call_t *call, mdl_members_t *members, const char *url,
                                   const char **filename)
{
    mdl_http_result_t result = mdl_http_url_check(&call->service->settings->ingest, url, NULL,
                                                  filename, call->r->pool);

    if (result == MDL_HTTP_URL_INVALID) {
        mdl_members_fault(members, "source_url", "invalid",
                          "This member must be an absolute https URL with a host name, without "
                          "user or password.");
    }
    return result;
}

static apr_status_t parse_import(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_import_t *import = apr_pcalloc(call->r->pool, sizeof *import);
    mdl_asset_t *asset = &import->asset;
    mdl_http_result_t host = MDL_HTTP_OK;
    const char *last_segment = NULL;
    apr_int64_t category_id;
    apr_status_t rv;

    asset->source_url = mdl_members_text(members, "source_url", MDL_REQUIRED, MAX_URL);
    asset->filename = mdl_members_text(members, "filename", MDL_OPTIONAL, MAX_FILENAME);
    asset->content_type = mdl_members_text(members, "content_type", MDL_OPTIONAL,
                                           MDL_MEDIA_TYPE_MAX);
    asset->title = mdl_members_text(members, "title", MDL_OPTIONAL, MAX_TITLE);
    import->expected_sha256 = sha256_of(members, call->r->pool);
    if (asset->source_url != NULL) {
        host = check_url(call, members, asset->source_url, &last_segment);
    }
    if (asset->filename != NULL && !filename_valid(asset->filename)) {
        mdl_members_fault(members, "filename", "invalid",
                          "This member must be a file's name without a path.");
    }
    if (asset->content_type != NULL && !mdl_media_type_valid(asset->content_type)) {
        mdl_members_fault(members, "content_type", "invalid",
                          "This member must be a media type such as video/mp4.");
    }
    category_id = mdl_members_int(members, "category_id", 1, (APR_INT64_C(1) << 53) - 1, 0);
    if ((rv = mdl_members_end(members)) != APR_SUCCESS) {
        return rv;
    }
    if (host == MDL_HTTP_HOST_NOT_ALLOWED) {
        mdl_members_fault(members, "source_url", "source_host_not_allowed",
                          "Imports from this host, port or scheme are not allowed.");
        rv = mdl_refuse(&call->refusal, 422, "source_host_not_allowed",
                        "The source's host is not on the allowlist.");
    }
    /* A shop has no categories yet, so that every id of one is unknown. */
    if (category_id != 0) {
        mdl_members_fault(members, "category_id", "unknown_reference",
                          "There is no such category in this shop.");
        rv = rv != APR_SUCCESS ? rv
                               : mdl_refuse(&call->refusal, 422, "unknown_reference",
                                            "The asset names a category that this shop does not "
                                            "have.");
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    import->shop_id = call->caller.shop_id;
    import->max_attempts = call->service->settings->ingest_max_attempts;
    if (asset->filename == NULL) {
        asset->filename = last_segment != NULL && filename_valid(last_segment) &&
                                  strlen(last_segment) <= MAX_FILENAME
                              ? last_segment
                              : "download";
    }
    if (asset->title == NULL) {
        asset->title = asset->filename;
    }
    call->arg = import;
    return APR_SUCCESS;
}

static void write_asset(mdl_json_t *to, const mdl_asset_t *asset)
{
    mdl_json_add_int(to, "id", asset->id);
    mdl_json_add_string(to, "status", asset->status);
    mdl_json_add_string(to, "filename", asset->filename);
    mdl_json_add_string(to, "title", asset->title);
    mdl_json_add_string(to, "content_type", asset->content_type);
    if (asset->sha256 != NULL) {
        mdl_json_add_int(to, "size", asset->size);
    } else {
        mdl_json_add_null(to, "size");
    }
    mdl_json_add_string(to, "sha256", asset->sha256);
    mdl_json_add_null(to, "category_id");
    mdl_json_add_string(to, "source_url", asset->source_url);
    mdl_json_add_int(to, "version", asset->version);
    mdl_json_add_time(to, "created_at", asset->created_at);
    mdl_json_add_time(to, "updated_at", asset->updated_at);
}

static void write_import(mdl_call_t *call)
{
    mdl_import_t *import = call->arg;

    call->status = 202;
    call->location = apr_pstrcat(call->r->pool, call->root, "/jobs/", import->job.id, NULL);
    write_asset(mdl_json_add_object(call->answer, "asset"), &import->asset);
    mdl_job_write(call->answer, "job", &import->job);
}

const mdl_route_t mdl_route_asset_import = {
    .method = "POST",
    .path = "/assets",
    .wakes = 1,
    .parse = parse_import,
    .effect = mdl_import_queue,
    .write = write_import,
};
