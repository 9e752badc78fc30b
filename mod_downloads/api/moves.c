#include "api/routes.h"

#include <apr_strings.h>

#include "api/jobs.h"
#include "api/members.h"
#include "core/identifier.h"
#include "core/order/move.h"

static apr_status_t count_parse(mdl_request_t *request)
{
    mdl_move_count_t *count = apr_pcalloc(request->r->pool, sizeof *count);

    count->shop_id = request->caller.shop_id;
    count->mapping_id = mdl_identifier_parse(request->parameters[0]);
    count->to_mapping_id = mdl_identifier_parse(request->parameters[1]);
    count->problem = &request->problem;
    request->arg = count;
    return APR_SUCCESS;
}

static void count_write(mdl_request_t *request)
{
    const mdl_move_count_t *count = request->arg;

    mdl_json_add_int(request->response, "orders", count->orders);
    mdl_json_add_int(request->response, "have_it", count->have);
    mdl_json_add_int(request->response, "to_give", count->lack);
    mdl_json_add_bool(request->response, "more", count->more);
}

static apr_status_t move_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_move_start_t *start = apr_pcalloc(request->r->pool, sizeof *start);

    start->shop_id = request->caller.shop_id;
    start->problem = &request->problem;
    start->move.mapping_id = mdl_identifier_parse(request->parameters[0]);
    start->move.to_mapping_id = mdl_identifier_parse(request->parameters[1]);
    start->move.license_keys = mdl_members_bool(members, "license_keys", 0);
    start->move.send_email = mdl_members_bool(members, "send_email", 0);
    start->move.key_id = request->caller.key_id;
    request->arg = start;
    return mdl_members_end(members);
}

static void move_write(mdl_request_t *request)
{
    const mdl_move_start_t *start = request->arg;

    request->status = HTTP_ACCEPTED;
    request->entity_id = request->parameters[0];
    request->location = apr_pstrcat(request->r->pool, request->root, "/jobs/", start->job->id,
                                    NULL);
    mdl_job_write_move(request, start->job, &start->move);
}

MDL_EFFECT(mdl_move_count, mdl_move_count_t *)
MDL_EFFECT(mdl_move_start, mdl_move_start_t *)

const mdl_route_t mdl_move_routes[] = {
    {"GET", "/mappings/{}/move-buyers/{}", .parse = count_parse, .effect = mdl_move_count_effect,
     .write = count_write},
    {"POST", "/mappings/{}/move-buyers/{}", "mapping", "buyers_moved", .optional_body = 1,
     .parse = move_parse, .effect = mdl_move_start_effect, .write = move_write},
    {0},
};
