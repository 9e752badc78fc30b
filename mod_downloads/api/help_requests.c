#include "api/routes.h"

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "core/audit.h"
#include "core/order/help_answer.h"

static const char *help_write_members(mdl_json_t *to, mdl_request_t *request, const void *entity)
{
    const mdl_help_request_t *help = entity;

    mdl_json_add_int(to, "id", help->id);
    mdl_json_add_string(to, "storefront_order_id", help->storefront_order_id);
    mdl_json_add_string(to, "finding", help->finding);
    mdl_json_add_string(to, "state", mdl_help_state_names[help->state]);
    mdl_json_add_string(to, "answer", help->answer);
    mdl_json_add_string(to, "decided_by", help->decided_by);
    mdl_json_add_time(to, "asked_at", help->asked_at);
    mdl_json_add_time(to, "decided_at", help->decided_at);
    return mdl_resource_id(request, help->id);
}

static apr_status_t help_parse_list(mdl_request_t *request)
{
    static const char *const states[] = {"asked", NULL};

    mdl_help_list_t *list = apr_pcalloc(request->r->pool, sizeof *list);
    mdl_list_t *query = mdl_list_begin(request);

    list->waiting = mdl_list_choice(query, "state", states) != NULL;
    request->arg = list;
    return mdl_list_end(query, &list->page);
}

typedef struct {
    mdl_request_t *request;
    mdl_help_answer_t answer;
} answer_t;

static apr_status_t answer_parse(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    answer_t *own = apr_pcalloc(request->r->pool, sizeof *own);
    mdl_entity_ref_t ref = mdl_resource_ref(request);

    own->request = request;
    own->answer = (mdl_help_answer_t){
        .access = {.shop_id = ref.shop_id,
                   .key_id = request->caller.key_id,
                   .default_download_limit = request->service->settings->download_limit,
                   .problem = &request->problem},
        .request_id = ref.id,
        .mail_host = mdl_settings_public_host(request->service->settings, request->r->pool)};
    own->answer.kind = mdl_members_choice(members, "answer", mdl_help_answer_names, 0);
    if (!mdl_members_given(members, "answer")) {
        mdl_members_fault(members, "answer", "required", "This member is required.");
    }
    own->answer.access.reason = mdl_members_text(members, "reason", MDL_OPTIONAL, MDL_REASON_MAX);
    request->arg = own;
    return mdl_members_end(members);
}

static apr_status_t answer_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    answer_t *own = arg;
    apr_status_t rv = mdl_help_answer(db, p, &own->answer);

    own->request->retry_after = own->answer.retry_after;
    return rv;
}

/* The audit has the order, as that of the other ways to answer does. */
static void answer_write(mdl_request_t *request)
{
    const answer_t *own = request->arg;

    help_write_members(request->response, request, &own->answer.request);
    request->entity_id = own->answer.request.storefront_order_id;
}

MDL_EFFECT(mdl_help_list, mdl_help_list_t *)
MDL_EFFECT(mdl_help_get, mdl_entity_ref_t *)

const mdl_route_t mdl_help_routes[] = {
    {"GET", "/help-requests", .write_entity = help_write_members, .parse = help_parse_list,
     .effect = mdl_help_list_effect, .write = mdl_list_write},
    {"GET", "/help-requests/{}", .write_entity = help_write_members, .parse = mdl_resource_parse,
     .effect = mdl_help_get_effect, .write = mdl_resource_write},
    {"POST", "/help-requests/{}/answer", "order", "help_answered", .parse = answer_parse,
     .effect = answer_effect, .write = answer_write},
    {0},
};
