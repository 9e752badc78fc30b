#include "api/routes.h"

#include <apr_strings.h>

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "core/identifier.h"
#include "core/shop/webhook_delivery.h"

/* --- endpoints --- */

/* Only the response that creates the secret shows it. */
static const char *webhook_write_members(mdl_json_t *to, mdl_request_t *request, const void *entity)
{
    const mdl_webhook_t *webhook = entity;

    mdl_json_add_int(to, "id", webhook->id);
    mdl_json_add_string(to, "url", webhook->url);
    mdl_json_add_string(to, "description", webhook->description);
    mdl_json_add_copy(to, "event_types", mdl_json_stored(webhook->types, request->r->pool));
    mdl_json_add_bool(to, "is_active", webhook->is_active);
    if (webhook->secret != NULL) {
        mdl_json_add_string(to, "secret", webhook->secret);
    }
    mdl_json_add_time(to, "previous_secret_until", webhook->old_until);
    mdl_json_add_time(to, "failing_since", webhook->failing_since);
    mdl_json_add_time(to, "disabled_at", webhook->disabled_at);
    mdl_json_add_time(to, "created_at", webhook->created_at);
    mdl_json_add_time(to, "updated_at", webhook->updated_at);
    return mdl_resource_id(request, webhook->id);
}

static const char *webhook_url_of(mdl_request_t *request, mdl_members_t *members,
                                  mdl_presence_t presence)
{
    const char *url = mdl_members_text(members, "url", presence, MDL_WEBHOOK_URL_MAX);

    if (url != NULL && !mdl_webhook_url_valid(request->service->settings, url, request->r->pool)) {
        mdl_members_fault(members, "url", "invalid", "This member " MDL_WEBHOOK_URL_RULE);
    }
    return url;
}

/* The event types as JSON text; NULL for all. */
static const char *webhook_types_of(mdl_request_t *request, mdl_members_t *members)
{
    const mdl_json_t *types = mdl_members_names(members, "event_types", mdl_event_type_names);

    return types != NULL ? mdl_json_text(types, NULL, request->r->pool) : NULL;
}

static mdl_webhook_edit_t *webhook_edit_begin(mdl_request_t *request)
{
    mdl_webhook_edit_t *edit = mdl_resource_begin(request, sizeof *edit);

    edit->secret = request->service->secret;
    edit->is_active = -1;
    return edit;
}

static apr_status_t webhook_parse_create(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_webhook_edit_t *edit = webhook_edit_begin(request);

    edit->url = webhook_url_of(request, members, MDL_REQUIRED);
    edit->description = mdl_members_text(members, "description", MDL_NULLABLE,
                                         MDL_WEBHOOK_TEXT_MAX);
    edit->types = webhook_types_of(request, members);
    edit->is_active = mdl_members_bool(members, "is_active", 1);
    return mdl_members_end(members);
}

static apr_status_t webhook_parse_change(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_webhook_edit_t *edit = webhook_edit_begin(request);

    edit->set_description = mdl_members_given(members, "description");
    edit->set_types = mdl_members_given(members, "event_types");
    edit->url = webhook_url_of(request, members, MDL_OPTIONAL);
    edit->description = mdl_members_text(members, "description", MDL_NULLABLE,
                                         MDL_WEBHOOK_TEXT_MAX);
    edit->types = webhook_types_of(request, members);
    if (mdl_members_given(members, "is_active")) {
        edit->is_active = mdl_members_bool(members, "is_active", 1);
    }
    return mdl_members_end(members);
}

MDL_EFFECT(mdl_webhook_page, mdl_list_page_t *)
MDL_EFFECT(mdl_webhook_create, mdl_webhook_edit_t *)
MDL_EFFECT(mdl_webhook_find, mdl_entity_ref_t *)
MDL_EFFECT(mdl_webhook_change, mdl_webhook_edit_t *)
MDL_EFFECT(mdl_webhook_delete, mdl_entity_ref_t *)

static apr_status_t webhook_parse_rotate(mdl_request_t *request)
{
    webhook_edit_begin(request);
    return mdl_members_none(request);
}

MDL_EFFECT(mdl_webhook_rotate, mdl_webhook_edit_t *)

static apr_status_t webhook_parse_test(mdl_request_t *request)
{
    mdl_resource_begin(request, sizeof(mdl_webhook_test_t));
    return mdl_members_none(request);
}

MDL_EFFECT(mdl_webhook_test, mdl_webhook_test_t *)

static void webhook_write_test(mdl_request_t *request)
{
    const mdl_webhook_test_t *test = request->arg;

    mdl_event_write(request->response, test->event, request->r->pool);
    request->status = HTTP_ACCEPTED;
}

/* --- deliveries --- */

static const char *delivery_write_members(mdl_json_t *to, mdl_request_t *request,
                                          const void *entity)
{
    const mdl_webhook_delivery_t *delivery = entity;

    mdl_json_add_int(to, "id", delivery->id);
    mdl_json_add_string(to, "event_id", mdl_event_id_text(delivery->event_id, request->r->pool));
    mdl_json_add_string(to, "event_type", delivery->type);
    mdl_json_add_string(to, "status", mdl_delivery_status_names[delivery->status]);
    mdl_json_add_int(to, "attempts", delivery->attempts);
    mdl_json_add_time(to, "next_attempt_at", delivery->due_at);
    mdl_json_add_int_if(to, "response_status", delivery->response_status,
                        delivery->response_status != 0);
    mdl_json_add_string(to, "response_body", delivery->response_body);
    mdl_json_add_string(to, "error", delivery->error);
    mdl_json_add_time(to, "created_at", delivery->created_at);
    mdl_json_add_time(to, "last_attempt_at", delivery->attempts > 0 ? delivery->updated_at : 0);
    return mdl_resource_id(request, delivery->id);
}

static apr_status_t delivery_parse_page(mdl_request_t *request)
{
    mdl_webhook_delivery_page_t *list = apr_pcalloc(request->r->pool, sizeof *list);

    list->ref = mdl_resource_ref(request);
    request->arg = list;
    return mdl_list_end(mdl_list_begin(request), &list->page);
}

MDL_EFFECT(mdl_webhook_delivery_page, mdl_webhook_delivery_page_t *)

static apr_status_t delivery_parse_resend(mdl_request_t *request)
{
    mdl_webhook_resend_t *resend = mdl_resource_begin(request, sizeof *resend);

    resend->id = mdl_identifier_parse(request->parameters[1]);
    return mdl_members_none(request);
}

MDL_EFFECT(mdl_webhook_resend, mdl_webhook_resend_t *)

static void delivery_write_resend(mdl_request_t *request)
{
    const mdl_webhook_resend_t *resend = request->arg;

    delivery_write_members(request->response, request, resend->delivery);
    request->status = HTTP_ACCEPTED;
}

const mdl_route_t mdl_webhook_routes[] = {
    {"GET", "/webhook-endpoints", .write_entity = webhook_write_members, .parse = mdl_list_parse,
     .effect = mdl_webhook_page_effect, .write = mdl_list_write},
    {"POST", "/webhook-endpoints", "webhook_endpoint", "created", .versioned = 1,
     .write_entity = webhook_write_members, .parse = webhook_parse_create,
     .effect = mdl_webhook_create_effect, .write = mdl_resource_write_created},
    {"GET", "/webhook-endpoints/{}", .versioned = 1, .write_entity = webhook_write_members,
     .parse = mdl_resource_parse, .effect = mdl_webhook_find_effect, .write = mdl_resource_write},
    {"PATCH", "/webhook-endpoints/{}", "webhook_endpoint", "changed", .versioned = 1,
     .write_entity = webhook_write_members, .parse = webhook_parse_change,
     .effect = mdl_webhook_change_effect, .write = mdl_resource_write},
    {"DELETE", "/webhook-endpoints/{}", "webhook_endpoint", "deleted", .versioned = 1,
     .optional_body = 1, .write_entity = webhook_write_members, .parse = mdl_resource_parse_delete,
     .effect = mdl_webhook_delete_effect, .write = mdl_resource_write_deleted},
    {"POST", "/webhook-endpoints/{}/rotate-secret", "webhook_endpoint", "secret_rotated",
     .versioned = 1, .optional_body = 1, .write_entity = webhook_write_members,
     .parse = webhook_parse_rotate, .effect = mdl_webhook_rotate_effect,
     .write = mdl_resource_write},
    {"POST", "/webhook-endpoints/{}/test", "webhook_endpoint", "tested", .versioned = 1,
     .optional_body = 1, .parse = webhook_parse_test, .effect = mdl_webhook_test_effect,
     .write = webhook_write_test},
    {"GET", "/webhook-endpoints/{}/deliveries", .write_entity = delivery_write_members,
     .parse = delivery_parse_page, .effect = mdl_webhook_delivery_page_effect,
     .write = mdl_list_write},
    {"POST", "/webhook-endpoints/{}/deliveries/{}/resend", "webhook_endpoint", "event_resent",
     .versioned = 1, .optional_body = 1, .parse = delivery_parse_resend,
     .effect = mdl_webhook_resend_effect, .write = delivery_write_resend},
    {0},
};
