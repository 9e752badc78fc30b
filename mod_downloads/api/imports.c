#include "api/routes.h"

#include <string.h>

#include <apr_strings.h>

#include "api/assets.h"
#include "api/jobs.h"
#include "api/resource.h"
#include "api/uploads.h"
#include "base/http/url.h"
#include "base/ulid.h"
#include "child_storage.h"
#include "core/identifier.h"
#include "core/catalog/import.h"

#define MAX_UPLOAD_ID 64

/* New bytes for an asset: from an upload if upload.id is set, else from an import. */
typedef struct {
    mdl_version_t version;
    mdl_upload_complete_t upload;
} new_version_t;

/* Reads source_url; *host gets the allowlist's verdict, *filename the last segment or NULL. */
static const char *import_source(mdl_request_t *request, mdl_members_t *members,
                                 mdl_presence_t presence, mdl_http_result_t *host,
                                 const char **filename)
{
    const char *url = mdl_members_text(members, "source_url", presence, MDL_IMPORT_URL_MAX);

    *host = MDL_HTTP_OK;
    *filename = NULL;
    if (url == NULL) {
        return NULL;
    }
    *host = mdl_http_url_check(&request->service->settings->ingest, url, NULL, filename,
                               request->r->pool);
    if (*host == MDL_HTTP_URL_INVALID) {
        mdl_members_fault(members, "source_url", "invalid",
                          "This member must be an absolute https URL with a host name, without "
                          "user or password.");
    }
    return url;
}

static apr_status_t import_check_host(mdl_request_t *request, mdl_members_t *members,
                                      mdl_http_result_t host)
{
    if (host != MDL_HTTP_HOST_NOT_ALLOWED) {
        return APR_SUCCESS;
    }
    mdl_members_fault(members, "source_url", "source_host_not_allowed",
                      "Imports from this host, port or scheme are not allowed.");
    return mdl_problem_set(&request->problem, 422, "source_host_not_allowed",
                           "The source's host is not on the allowlist.");
}

static void import_begin(mdl_request_t *request, mdl_members_t *members, mdl_import_t *import)
{
    import->shop_id = request->caller.shop_id;
    import->secret = request->service->secret;
    import->expected_sha256 = mdl_asset_sha256(members, request->r->pool);
    import->max_attempts = request->service->settings->ingest_max_attempts;
    import->problem = &request->problem;
}

static apr_status_t import_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_import_t *import = apr_pcalloc(request->r->pool, sizeof *import);
    mdl_asset_t *asset = &import->asset;
    mdl_http_result_t host;
    const char *last_segment;
    apr_status_t rv;

    import_begin(request, members, import);
    asset->source_url = import_source(request, members, MDL_REQUIRED, &host, &last_segment);
    asset->filename = mdl_asset_filename(members, MDL_OPTIONAL);
    asset->content_type = mdl_asset_content_type(members, MDL_OPTIONAL);
    asset->title = mdl_asset_title(members, MDL_OPTIONAL);
    asset->category_id = mdl_asset_category_id(members);
    if ((rv = mdl_members_end(members)) != APR_SUCCESS ||
        (rv = import_check_host(request, members, host)) != APR_SUCCESS) {
        return rv;
    }
    mdl_import_name(asset, last_segment);
    request->arg = import;
    return mdl_child_storage_admit(request->r, -1, &request->problem);
}

static void import_write_queued(mdl_request_t *request, const mdl_import_t *import)
{
    request->status = 202;
    request->location = apr_pstrcat(request->r->pool, request->root, "/jobs/", import->job.id,
                                    NULL);
    request->entity_id = mdl_resource_id(request, import->asset.id);
    mdl_asset_write(request, &import->asset);
    mdl_job_write(request, &import->job);
}

static void import_write(mdl_request_t *request)
{
    import_write_queued(request, request->arg);
}

MDL_EFFECT(mdl_import_queue, mdl_import_t *)

static apr_status_t version_unknown_upload(mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_problem_add_detail(problem, "/upload_id", "unknown_reference",
                           "There is no such upload in this shop.", p);
    return mdl_problem_set(problem, 422, "unknown_reference",
                           "The version names an upload that this shop does not have.");
}

static apr_status_t version_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    new_version_t *new = apr_pcalloc(request->r->pool, sizeof *new);
    mdl_version_t *version = &new->version;
    const char *last_segment;
    const char *upload_id = mdl_members_text(members, "upload_id", MDL_OPTIONAL, MAX_UPLOAD_ID);
    mdl_http_result_t host;
    apr_status_t rv;

    import_begin(request, members, &version->import);
    version->asset_id = mdl_identifier_parse(request->parameters[0]);
    /* A malformed id is looked up, too: an upload without an asset id would create an asset. */
    if (version->asset_id == 0) {
        version->asset_id = -1;
    }
    version->versions = request->versions;
    version->source_url = import_source(request, members, MDL_OPTIONAL, &host, &last_segment);
    if (!mdl_members_given(members, "source_url") && !mdl_members_given(members, "upload_id")) {
        mdl_members_fault(members, "source_url", "required",
                          "This member or upload_id is required.");
    }
    if (upload_id != NULL &&
        (version->source_url != NULL || version->import.expected_sha256 != NULL)) {
        mdl_members_fault(members, "upload_id", "invalid",
                          "This member stands alone: an upload is no import.");
    }
    version->news = (mdl_asset_news_t){
        .note = mdl_members_lines(members, "note", MDL_ASSET_NOTE_MAX),
        .notify = mdl_members_bool(members, "notify", 0)};
    if ((rv = mdl_members_end(members)) != APR_SUCCESS ||
        (rv = import_check_host(request, members, host)) != APR_SUCCESS) {
        return rv;
    }
    request->arg = new;
    if (upload_id == NULL) {
        return mdl_child_storage_admit(request->r, -1, &request->problem);
    }
    new->upload.asset_id = version->asset_id;
    new->upload.news = version->news;
    return mdl_ulid_valid("upl_", upload_id)
               ? mdl_upload_prepare(request, &new->upload, upload_id)
               : version_unknown_upload(&request->problem, request->r->pool);
}

static apr_status_t version_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    new_version_t *new = arg;
    mdl_problem_t *problem = new->upload.problem;
    apr_status_t rv;

    if (new->upload.id == NULL) {
        return mdl_version_queue(db, p, &new->version);
    }
    rv = mdl_upload_complete(db, p, &new->upload);
    /* An unknown id in the body has another code than one in the path. */
    if (rv == MDL_EPROBLEM && strcmp(problem->code, "upload_not_found") == 0) {
        mdl_problem_clear(problem);
        return version_unknown_upload(problem, p);
    }
    return rv;
}

static void version_write(mdl_request_t *request)
{
    const new_version_t *new = request->arg;

    if (new->upload.id != NULL) {
        mdl_upload_write_asset(request, &new->upload);
    } else {
        import_write_queued(request, &new->version.import);
    }
}

const mdl_route_t mdl_import_routes[] = {
    {"POST", "/assets", "asset", "imported", .versioned = 1, .parse = import_parse,
     .effect = mdl_import_queue_effect, .write = import_write},
    {"POST", "/assets/{}/versions", "asset", "version_added", .versioned = 1,
     .parse = version_parse, .effect = version_effect, .write = version_write},
    {0},
};
