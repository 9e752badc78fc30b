#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>

#include "base/names.h"
#include "base/text/present.h"
#include "settings/frame.h"

#define LINES 50

/* The nouns and actions that templates have words for; the filter offers the nouns. */
static const char *const nouns[] = {"order",    "customer", "asset", "upload",           "job",
                                    "category", "pack",     "link",  "license_key_tag",  "mapping",
                                    "api_key",  "member",   "shop",  "webhook_endpoint", NULL};

static const char *const actions[] = {
    "created",      "changed",       "saved",       "deleted",
    "imported",     "version_added", "keys_added",  "begun",
    "aborted",      "completed",     "cancelled",   "retried",
    "assigned",     "revoked",       "restored",    "downloads_granted",
    "email_resent", "link_rotated",  "approved",    "rejected",
    "suspended",    "blocked",       "unblocked",   "secret_rotated",
    "tested",       "event_resent",  "key_deleted", "quantity_changed",
    "asked",        "confirmed",     "signed_out",  NULL};

MDL_EFFECT(mdl_audit_list, mdl_audit_list_t *)

/* Only operators see why a shop is blocked. */
static int audit_shows_detail(const mdl_visit_t *visit, const mdl_audit_t *entry)
{
    return visit->role >= MDL_ROLE_OPERATOR || strcmp(entry->action, "blocked") != 0;
}

static void audit_add_entry(mdl_json_t *to, const mdl_visit_t *visit, const mdl_audit_t *entry)
{
    mdl_json_t *noun = mdl_json_add_object(to, "noun");

    mdl_present_date(to, "at", entry->created_at);
    mdl_json_add_int_if(to, "of_shop", entry->shop_id, entry->shop_id != 0);
    mdl_json_add_string(to, "of_shop_name", entry->shop_name);
    mdl_frame_add_choice(noun, nouns, mdl_names_find(nouns, entry->noun));
    mdl_frame_add_choice(mdl_json_add_object(to, "action"), actions,
                         mdl_names_find(actions, entry->action));
    mdl_json_add_string(to, "noun_id", entry->noun_id);
    mdl_json_add_string(to, "by_key", entry->key_id);
    mdl_json_add_string(to, "key_name", entry->key_name);
    mdl_json_add_string(to, "by_user", entry->user);
    mdl_json_add_bool(to, "by_command", entry->via == MDL_VIA_COMMAND);
    mdl_json_add_string(to, "detail", audit_shows_detail(visit, entry) ? entry->detail : NULL);
}

/* The query of the next page. */
static const char *audit_next(const mdl_audit_list_t *list, apr_pool_t *p)
{
    return apr_psprintf(p, "noun=%s&who=%s&before=%" APR_INT64_T_FMT,
                        list->noun != NULL ? list->noun : "",
                        list->who != NULL ? ap_escape_urlencoded(p, list->who) : "", list->next);
}

static int audit_show(mdl_visit_t *visit)
{
    int noun = mdl_names_find(nouns, mdl_visit_parameter(visit, "noun"));
    mdl_audit_list_t list = {.shop_id = visit->shop != NULL ? visit->shop->id : 0,
                             .before = mdl_visit_before(visit),
                             .noun = noun >= 0 ? nouns[noun] : NULL,
                             .who = mdl_visit_parameter(visit, "who"),
                             .limit = LINES};
    mdl_json_t *data, *entries;
    apr_status_t rv;

    if (list.who != NULL && strlen(list.who) > MDL_MEMBER_USER_MAX) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    if ((rv = mdl_visit_read(visit, mdl_audit_list_effect, &list)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_bool(data, "on_audit", 1);
    mdl_json_add_string(data, "who", list.who);
    mdl_frame_add_choice(mdl_json_add_object(data, "chosen"), nouns, noun);
    mdl_json_add_bool(data, "filtered", list.who != NULL || list.noun != NULL);
    mdl_json_add_bool(data, "has_entries", list.found->nelts > 0);
    mdl_json_add_string(data, "next", list.next != 0 ? audit_next(&list, visit->r->pool) : NULL);
    entries = mdl_json_add_array(data, "entries");
    for (int i = 0; i < list.found->nelts; i++) {
        audit_add_entry(mdl_json_add_object(entries, NULL), visit,
                        APR_ARRAY_IDX(list.found, i, const mdl_audit_t *));
    }
    return mdl_frame_send(visit, HTTP_OK, "audit.html", data, NULL);
}

const mdl_page_t mdl_audit_pages[] = {
    {"audit", .sees = MDL_ROLE_OPERATOR, .get = audit_show},
    {"{}/audit", .sees = MDL_ROLE_OWNER, .get = audit_show},
    {0},
};
