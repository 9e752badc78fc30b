#include "api/routes.h"

#include "api/list.h"
#include "api/resource.h"
#include "core/audit.h"
#include "core/shop/member.h"

static apr_status_t audit_parse_list(mdl_request_t *request)
{
    mdl_audit_list_t *audit = apr_pcalloc(request->r->pool, sizeof *audit);
    mdl_list_t *query = mdl_list_begin(request);
    apr_status_t rv;

    audit->noun = mdl_list_choice(query, "noun", mdl_audit_noun_names);
    audit->who = mdl_list_text(query, "who", MDL_MEMBER_USER_MAX);
    request->arg = audit;
    rv = mdl_list_end(query, &audit->page);
    audit->page.limit--; /* the audit says itself whether there are older entries */
    return rv;
}

static const char *audit_write_row(mdl_json_t *to, mdl_request_t *request, const void *row)
{
    const mdl_audit_t *entry = row;

    mdl_json_add_int(to, "id", entry->id);
    mdl_json_add_string(to, "noun", entry->noun);
    mdl_json_add_string(to, "noun_id", entry->noun_id);
    mdl_json_add_string(to, "action", entry->action);
    mdl_json_add_string(to, "via", mdl_via_names[entry->via]);
    mdl_json_add_string(to, "user", entry->user);
    mdl_json_add_string(to, "key_id", entry->key_id);
    mdl_json_add_string(to, "key_name", entry->key_name);
    mdl_json_add_string(to, "request_id", entry->request_id);
    mdl_json_add_string(to, "detail", entry->detail);
    mdl_json_add_time(to, "created_at", entry->created_at);
    return mdl_resource_id(request, entry->id);
}

MDL_EFFECT(mdl_audit_list, mdl_audit_list_t *)

const mdl_route_t mdl_audit_routes[] = {
    {"GET", "/audit", .scope = MDL_KEY_SCOPE_FULL, .write_entity = audit_write_row,
     .parse = audit_parse_list, .effect = mdl_audit_list_effect, .write = mdl_list_write},
    {0},
};
