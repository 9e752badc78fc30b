#include "api/routes.h"

#include <apr_time.h>

#include "api/list.h"
#include "api/order_view.h"
#include "api/resource.h"
#include "core/identifier.h"
#include "core/download/archive.h"
#include "core/download/signed_url.h"
#include "core/order/offer.h"

static mdl_assignment_list_t *assignment_begin(mdl_request_t *request)
{
    mdl_assignment_list_t *list = apr_pcalloc(request->r->pool, sizeof *list);

    list->page.shop_id = request->caller.shop_id;
    list->storefront_order_id = request->parameters[0];
    list->default_download_limit = request->service->settings->download_limit;
    list->problem = &request->problem;
    request->arg = list;
    return list;
}

static apr_status_t assignment_parse_list(mdl_request_t *request)
{
    mdl_assignment_list_t *list = assignment_begin(request);

    return mdl_identifier_is_digits(request->parameters[0])
               ? mdl_list_end(mdl_list_begin(request), &list->page)
               : mdl_order_refuse_unknown(&request->problem);
}

static const char *assignment_write_members(mdl_json_t *to, mdl_request_t *request,
                                            const void *entity)
{
    const mdl_assignment_t *assignment = entity;

    mdl_assignment_write(to, request, assignment);
    return mdl_resource_id(request, assignment->id);
}

MDL_EFFECT(mdl_assignment_list, mdl_assignment_list_t *)

static apr_status_t assignment_parse(mdl_request_t *request)
{
    mdl_assignment_list_t *list = assignment_begin(request);

    if (!mdl_identifier_is_digits(request->parameters[0])) {
        return mdl_order_refuse_unknown(&request->problem);
    }
    list->id = mdl_identifier_parse(request->parameters[1]);
    /* A malformed id is looked up, too, since an unknown order is reported first. */
    if (list->id == 0) {
        list->id = -1;
    }
    return APR_SUCCESS;
}

static apr_status_t assignment_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_assignment_list_t *list = arg;
    apr_status_t rv = mdl_assignment_list(db, p, list);

    return rv == APR_SUCCESS && list->page.found->nelts == 0
               ? mdl_problem_set(list->problem, 404, "assignment_not_found",
                                 "There is no such assignment.")
               : rv;
}

static const mdl_assignment_t *assignment_found(const mdl_assignment_list_t *list)
{
    return APR_ARRAY_IDX(list->page.found, 0, const mdl_assignment_t *);
}

static void assignment_write(mdl_request_t *request)
{
    mdl_assignment_write(request->response, request, assignment_found(request->arg));
}

static apr_status_t urls_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_assignment_list_t *list = arg;
    apr_status_t rv;

    if ((rv = assignment_read(db, p, list)) != APR_SUCCESS ||
        (rv = mdl_order_check_active(list->order, list->problem)) != APR_SUCCESS ||
        (rv = mdl_order_check_declared(list->order, list->problem)) != APR_SUCCESS) {
        return rv;
    }
    if (assignment_found(list)->status != MDL_ASSIGNMENT_ACTIVE) {
        return mdl_problem_set(list->problem, 409, "access_revoked",
                               "This assignment was revoked; restore it first.");
    }
    if (!mdl_assignment_open(assignment_found(list), apr_time_now())) {
        return mdl_problem_set(list->problem, 409, "access_revoked",
                               "Access to this assignment has expired; extend it first.");
    }
    return APR_SUCCESS;
}

static void urls_write_zip(mdl_request_t *request, const mdl_assignment_list_t *list,
                           mdl_signed_file_t *link)
{
    apr_pool_t *p = request->r->pool;
    apr_int64_t size = mdl_offer_archive_size(assignment_found(list), p);
    const char *filename = mdl_archive_filename(list->order->storefront_order_id, p);
    mdl_json_t *zip;

    if (size == 0) {
        mdl_json_add_null(request->response, "zip");
        return;
    }
    link->asset_id = 0;
    zip = mdl_json_add_object(request->response, "zip");
    mdl_json_add_string(zip, "filename", filename);
    mdl_json_add_int(zip, "size", size);
    mdl_json_add_string(zip, "url",
                        mdl_signed_url_file(request->service->secret,
                                            request->service->settings->public_url, link, filename,
                                            p));
}

static void urls_write(mdl_request_t *request)
{
    const mdl_settings_t *settings = request->service->settings;
    const mdl_assignment_t *assignment = assignment_found(request->arg);
    mdl_signed_file_t link = {.page_id = ((mdl_assignment_list_t *)request->arg)->order->page_id,
                              .assignment_id = assignment->id};
    mdl_json_t *files;

    link.expires_at = apr_time_from_sec(apr_time_sec(apr_time_now()) +
                                        apr_time_sec(settings->link_lifetime));
    mdl_json_add_time(request->response, "expires_at", link.expires_at);
    files = mdl_json_add_array(request->response, "files");
    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *);
        mdl_json_t *object;

        if (file->status != MDL_ASSET_READY) {
            continue;
        }
        link.asset_id = file->asset_id;
        object = mdl_json_add_object(files, NULL);
        mdl_json_add_int(object, "file_id", file->asset_id);
        mdl_json_add_string(object, "filename", file->filename);
        mdl_json_add_string(object, "url",
                            mdl_signed_url_file(request->service->secret, settings->public_url,
                                                &link, file->filename, request->r->pool));
    }
    urls_write_zip(request, request->arg, &link);
}

const mdl_route_t mdl_assignment_routes[] = {
    {"GET", "/orders/{}/assignments", .write_entity = assignment_write_members,
     .parse = assignment_parse_list, .snapshot = 1, .effect = mdl_assignment_list_effect,
     .write = mdl_list_write},
    {"GET", "/orders/{}/assignments/{}", .parse = assignment_parse, .snapshot = 1,
     .effect = assignment_read, .write = assignment_write},
    /* these URLs are the right to download */
    {"GET", "/orders/{}/assignments/{}/download-urls", .scope = MDL_KEY_SCOPE_DELIVER,
     .parse = assignment_parse, .snapshot = 1, .effect = urls_read, .write = urls_write},
    {0},
};
