#include "api/assignments.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "api/list.h"
#include "api/members.h"
#include "api/order_view.h"
#include "core/link.h"

typedef struct {
    mdl_call_t *call;
    mdl_list_t *page; /* NULL for one assignment */
    mdl_assignment_list_t list;
} read_t;

static read_t *begin(mdl_call_t *call)
{
    read_t *own = apr_pcalloc(call->r->pool, sizeof *own);

    own->call = call;
    own->list.shop_id = call->caller.shop_id;
    own->list.storefront_order_id = call->parameters[0];
    own->list.default_download_limit = call->service->settings->download_limit;
    call->arg = own;
    return own;
}

static apr_status_t parse_list(mdl_call_t *call)
{
    read_t *own = begin(call);
    apr_status_t rv;

    if (!mdl_members_is_digits(call->parameters[0])) {
        return mdl_order_not_found(call);
    }
    own->page = mdl_list_begin(call);
    if ((rv = mdl_list_end(own->page)) != APR_SUCCESS) {
        return rv;
    }
    own->list.before = mdl_list_before(own->page);
    own->list.limit = mdl_list_rows(own->page);
    return APR_SUCCESS;
}

static apr_status_t read_list(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    read_t *own = arg;
    apr_status_t rv = mdl_assignment_list(db, p, &own->list);

    return rv == APR_ENOENT ? mdl_order_not_found(own->call) : rv;
}

static const char *write_row(mdl_json_t *to, mdl_call_t *call, const void *row)
{
    const mdl_assignment_t *assignment = row;

    mdl_assignment_write(to, assignment);
    return apr_psprintf(call->r->pool, "%" APR_INT64_T_FMT, assignment->id);
}

static void write_list(mdl_call_t *call)
{
    const read_t *own = call->arg;

    mdl_list_write(own->page, own->list.assignments, write_row);
}

const mdl_route_t mdl_route_assignment_list = {
    .method = "GET",
    .path = "/orders/{}/assignments",
    .parse = parse_list,
    .effect = read_list,
    .write = write_list,
};

static apr_status_t not_found(mdl_call_t *call)
{
    return mdl_refuse(&call->refusal, 404, "assignment_not_found", "There is no such assignment.");
}

static apr_status_t parse_one(mdl_call_t *call)
{
    read_t *own = begin(call);

    if (!mdl_members_is_digits(call->parameters[0])) {
        return mdl_order_not_found(call);
    }
    own->list.id = mdl_members_path_id(call->parameters[1]);
    /* An id that none can have still asks whether there is such an order. */
    if (own->list.id == 0) {
        own->list.id = -1;
    }
    return APR_SUCCESS;
}

static apr_status_t read_one(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    read_t *own = arg;
    apr_status_t rv = read_list(db, p, own);

    return rv == APR_SUCCESS && own->list.assignments->nelts == 0 ? not_found(own->call) : rv;
}

static const mdl_assignment_t *assignment_of(const mdl_call_t *call)
{
    return APR_ARRAY_IDX(((const read_t *)call->arg)->list.assignments, 0,
                         const mdl_assignment_t *);
}

static void write_one(mdl_call_t *call)
{
    mdl_assignment_write(call->answer, assignment_of(call));
}

const mdl_route_t mdl_route_assignment = {
    .method = "GET",
    .path = "/orders/{}/assignments/{}",
    .parse = parse_one,
    .effect = read_one,
    .write = write_one,
};

static apr_status_t read_urls(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    read_t *own = arg;
    mdl_refusal_t *refusal = &own->call->refusal;
    apr_status_t rv;

    if ((rv = read_one(db, p, own)) != APR_SUCCESS ||
        (rv = mdl_order_check_active(own->list.order, refusal)) != APR_SUCCESS) {
        return rv;
    }
    if (strcmp(assignment_of(own->call)->status, "active") != 0) {
        return mdl_refuse(refusal, 409, "access_revoked",
                          "This assignment was revoked; restore it first.");
    }
    if (!mdl_assignment_open(assignment_of(own->call), apr_time_now())) {
        return mdl_refuse(refusal, 409, "access_revoked",
                          "Access to this assignment has expired; extend it first.");
    }
    return APR_SUCCESS;
}

static void write_urls(mdl_call_t *call)
{
    const mdl_settings_t *settings = call->service->settings;
    const mdl_assignment_t *assignment = assignment_of(call);
    mdl_link_file_t link = {.assignment_id = assignment->id};
    mdl_json_t *files;

    link.expires_at = apr_time_from_sec(apr_time_sec(apr_time_now()) +
                                        apr_time_sec(settings->link_lifetime));
    mdl_json_add_time(call->answer, "expires_at", link.expires_at);
    files = mdl_json_add_array(call->answer, "files");
    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *);
        mdl_json_t *object;

        if (strcmp(file->status, "ready") != 0) {
            continue;
        }
        link.asset_id = file->asset_id;
        object = mdl_json_add_object(files, NULL);
        mdl_json_add_int(object, "file_id", file->asset_id);
        mdl_json_add_string(object, "filename", file->filename);
        mdl_json_add_string(object, "url",
                            mdl_link_file_url(call->service->secret, settings->public_url, &link,
                                              file->filename, call->r->pool));
    }
    mdl_json_add_null(call->answer, "zip");
}

const mdl_route_t mdl_route_download_urls = {
    .method = "GET",
    .path = "/orders/{}/assignments/{}/download-urls",
    .parse = parse_one,
    .effect = read_urls,
    .write = write_urls,
};
