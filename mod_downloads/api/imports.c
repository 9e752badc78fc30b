#include "api/imports.h"

#include <string.h>

#include <apr_strings.h>

#include "api/assets.h"
#include "api/jobs.h"
#include "api/uploads.h"
#include "base/ulid.h"
#include "core/catalog/import.h"

#define MAX_URL       2048
#define MAX_UPLOAD_ID 64

/* New bytes for an asset, from either side. */
typedef struct {
    mdl_version_t version;
    mdl_upload_complete_t upload; /* instead, when it has an id */
} new_version_t;

/* Reads source_url; *host gets what the allowlist says to it, *filename its last segment or NULL.
 */
static const char *source_of(mdl_call_t *call, mdl_members_t *members, mdl_presence_t presence,
                             mdl_http_result_t *host, const char **filename)
{
    const char *url = mdl_members_text(members, "source_url", presence, MAX_URL);

    *host = MDL_HTTP_OK;
    *filename = NULL;
    if (url == NULL) {
        return NULL;
    }
    *host = mdl_http_url_check(&call->service->settings->ingest, url, NULL, filename,
                               call->r->pool);
    if (*host == MDL_HTTP_URL_INVALID) {
        mdl_members_fault(members, "source_url", "invalid",
                          "This member must be an absolute https URL with a host name, without "
                          "user or password.");
    }
    return url;
}

static apr_status_t check_host(mdl_call_t *call, mdl_members_t *members, mdl_http_result_t host)
{
    if (host != MDL_HTTP_HOST_NOT_ALLOWED) {
        return APR_SUCCESS;
    }
    mdl_members_fault(members, "source_url", "source_host_not_allowed",
                      "Imports from this host, port or scheme are not allowed.");
    return mdl_refuse(&call->refusal, 422, "source_host_not_allowed",
                      "The source's host is not on the allowlist.");
}

static void prepare(mdl_call_t *call, mdl_members_t *members, mdl_import_t *import)
{
    import->shop_id = call->caller.shop_id;
    import->expected_sha256 = mdl_asset_sha256(members, call->r->pool);
    import->max_attempts = call->service->settings->ingest_max_attempts;
    import->refusal = &call->refusal;
}

static apr_status_t parse_import(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    mdl_import_t *import = apr_pcalloc(call->r->pool, sizeof *import);
    mdl_asset_t *asset = &import->asset;
    mdl_http_result_t host;
    const char *last_segment;
    apr_status_t rv;

    prepare(call, members, import);
    asset->source_url = source_of(call, members, MDL_REQUIRED, &host, &last_segment);
    asset->filename = mdl_asset_filename(members, MDL_OPTIONAL);
    asset->content_type = mdl_asset_content_type(members);
    asset->title = mdl_asset_title(members, MDL_OPTIONAL);
    asset->category_id = mdl_asset_category_id(members);
    if ((rv = mdl_members_end(members)) != APR_SUCCESS ||
        (rv = check_host(call, members, host)) != APR_SUCCESS) {
        return rv;
    }
    if (asset->filename == NULL) {
        asset->filename = last_segment != NULL && mdl_asset_filename_valid(last_segment)
                              ? last_segment
                              : "download";
    }
    if (asset->title == NULL) {
        asset->title = asset->filename;
    }
    call->arg = import;
    return APR_SUCCESS;
}

static void write_queued(mdl_call_t *call, const mdl_import_t *import)
{
    call->status = 202;
    call->location = apr_pstrcat(call->r->pool, call->root, "/jobs/", import->job.id, NULL);
    mdl_asset_write(call, &import->asset);
    mdl_job_write(call, &import->job);
}

static void write_import(mdl_call_t *call)
{
    write_queued(call, call->arg);
}

const mdl_route_t mdl_route_asset_import = {
    .method = "POST",
    .path = "/assets",
    .wakes = 1,
    .parse = parse_import,
    .effect = mdl_import_queue,
    .write = write_import,
};

static apr_status_t unknown_upload(mdl_refusal_t *refusal, apr_pool_t *p)
{
    mdl_refusal_detail(refusal, "/upload_id", "unknown_reference",
                       "There is no such upload in this shop.", p);
    return mdl_refuse(refusal, 422, "unknown_reference",
                      "The version names an upload that this shop does not have.");
}

static apr_status_t parse_version(mdl_call_t *call)
{
    mdl_members_t *members = mdl_members_begin(call, call->body, "");
    new_version_t *new = apr_pcalloc(call->r->pool, sizeof *new);
    mdl_version_t *version = &new->version;
    const char *last_segment;
    const char *upload_id = mdl_members_text(members, "upload_id", MDL_OPTIONAL, MAX_UPLOAD_ID);
    mdl_http_result_t host;
    apr_status_t rv;

    prepare(call, members, &version->import);
    version->asset_id = mdl_members_path_id(call->parameters[0]);
    version->source_url = source_of(call, members, upload_id != NULL ? MDL_OPTIONAL : MDL_REQUIRED,
                                    &host, &last_segment);
    if (upload_id != NULL &&
        (version->source_url != NULL || version->import.expected_sha256 != NULL)) {
        mdl_members_fault(members, "upload_id", "invalid",
                          "This member stands alone: an upload is no import.");
    }
    if ((rv = mdl_members_end(members)) != APR_SUCCESS ||
        (rv = check_host(call, members, host)) != APR_SUCCESS) {
        return rv;
    }
    call->arg = new;
    if (upload_id == NULL) {
        return APR_SUCCESS;
    }
    new->upload.asset_id = version->asset_id;
    return mdl_ulid_valid("upl_", upload_id) ? mdl_upload_prepare(call, &new->upload, upload_id)
                                             : unknown_upload(&call->refusal, call->r->pool);
}

static apr_status_t version_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    new_version_t *new = arg;
    mdl_refusal_t *refusal = new->upload.refusal;
    apr_status_t rv;

    if (new->upload.id == NULL) {
        return mdl_version_queue(db, p, &new->version);
    }
    rv = mdl_upload_complete(db, p, &new->upload);
    /* What the path does not name but the body is another code. */
    if (rv == MDL_EREFUSED && strcmp(refusal->code, "upload_not_found") == 0) {
        mdl_refusal_clear(refusal);
        return unknown_upload(refusal, p);
    }
    return rv;
}

static void write_version(mdl_call_t *call)
{
    const new_version_t *new = call->arg;

    if (new->upload.id != NULL) {
        mdl_upload_write_asset(call, &new->upload);
    } else {
        write_queued(call, &new->version.import);
    }
}

const mdl_route_t mdl_route_asset_version = {
    .method = "POST",
    .path = "/assets/{}/versions",
    .wakes = 1,
    .parse = parse_version,
    .effect = version_effect,
    .write = write_version,
};
