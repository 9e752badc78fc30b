#include "api/routes.h"

#include "api/members.h"
#include "api/resource.h"
#include "core/audit.h"
#include "core/identifier.h"
#include "core/order/customer.h"
#include "core/order/merge.h"

static const char *customer_write_members(mdl_json_t *to, mdl_request_t *request,
                                          const void *entity)
{
    const mdl_customer_t *customer = entity;

    mdl_json_add_int(to, "id", customer->id);
    mdl_json_add_string(to, "storefront_customer_id", customer->storefront_customer_id);
    mdl_json_add_string(to, "email", customer->email);
    mdl_json_add_string(to, "first_name", customer->first_name);
    mdl_json_add_string(to, "last_name", customer->last_name);
    mdl_json_add_string(to, "locale", customer->locale);
    mdl_json_add_time(to, "created_at", customer->created_at);
    mdl_json_add_time(to, "updated_at", customer->updated_at);
    return mdl_resource_id(request, customer->id);
}

static apr_status_t customer_parse_change(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_customer_change_t *change = mdl_resource_begin(request, sizeof *change);

    change->email = mdl_members_text(members, "email", MDL_OPTIONAL, 254);
    change->email = mdl_members_email(members, "email", change->email);
    change->clear_recipients = mdl_members_bool(members, "clear_order_recipients", 0);
    change->rotate_links = mdl_members_bool(members, "rotate_links", 0);
    change->reason = mdl_members_text(members, "reason", MDL_OPTIONAL, MDL_REASON_MAX);
    change->key_id = request->caller.key_id;
    if ((change->clear_recipients || change->rotate_links) &&
        !mdl_members_given(members, "email")) {
        mdl_members_fault(members, "email", "required",
                          "Give email: the other members go with a new address.");
    }
    return mdl_members_end(members);
}

static apr_status_t customer_parse_merge(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_merge_t *merge = mdl_resource_begin(request, sizeof *merge);

    merge->into_id = mdl_members_int(members, "into_customer_id", MDL_REQUIRED, 1,
                                     MDL_IDENTIFIER_MAX, 0);
    return mdl_members_end(members);
}

MDL_EFFECT(mdl_customer_find, mdl_entity_ref_t *)
MDL_EFFECT(mdl_customer_change, mdl_customer_change_t *)
MDL_EFFECT(mdl_customer_merge, mdl_merge_t *)

const mdl_route_t mdl_customer_routes[] = {
    {"GET", "/customers/{}", .versioned = 1, .write_entity = customer_write_members,
     .parse = mdl_resource_parse, .effect = mdl_customer_find_effect, .write = mdl_resource_write},
    {"PATCH", "/customers/{}", "customer", "changed", .versioned = 1,
     .write_entity = customer_write_members, .parse = customer_parse_change,
     .effect = mdl_customer_change_effect, .write = mdl_resource_write},
    {"POST", "/customers/{}/merge", "customer", "merged", .versioned = 1,
     .write_entity = customer_write_members, .parse = customer_parse_merge,
     .effect = mdl_customer_merge_effect, .write = mdl_resource_write},
    {0},
};
