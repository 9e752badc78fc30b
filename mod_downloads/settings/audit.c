#include "settings/pages.h"

#include <apr_strings.h>

#include "base/names.h"
#include "base/text/present.h"
#include "settings/filter.h"
#include "settings/frame.h"

#define LINES 50

/* The actions that templates have words for, as they have for all nouns. */
static const char *const actions[] = {"created",
                                      "changed",
                                      "saved",
                                      "deleted",
                                      "imported",
                                      "version_added",
                                      "version_restored",
                                      "keys_added",
                                      "begun",
                                      "aborted",
                                      "completed",
                                      "cancelled",
                                      "retried",
                                      "assigned",
                                      "revoked",
                                      "restored",
                                      "downloads_granted",
                                      "email_resent",
                                      "link_rotated",
                                      "approved",
                                      "rejected",
                                      "suspended",
                                      "blocked",
                                      "unblocked",
                                      "secret_rotated",
                                      "tested",
                                      "event_resent",
                                      "key_deleted",
                                      "quantity_changed",
                                      "asked",
                                      "confirmed",
                                      "signed_out",
                                      "exported",
                                      "address_changed",
                                      "logo_changed",
                                      "logo_deleted",
                                      "email_tested",
                                      "buyers_moved",
                                      "help_refused",
                                      "merged",
                                      "help_answered",
                                      NULL};

MDL_EFFECT(mdl_audit_list, mdl_audit_list_t *)

static void audit_add_entry(mdl_json_t *to, const mdl_audit_t *entry)
{
    mdl_json_t *noun = mdl_json_add_object(to, "noun");

    mdl_present_date(to, "at", entry->created_at);
    mdl_json_add_int_if(to, "of_shop", entry->shop_id, entry->shop_id != 0);
    mdl_json_add_string(to, "of_shop_name", entry->shop_name);
    mdl_frame_add_choice(noun, mdl_audit_noun_names,
                         mdl_names_find(mdl_audit_noun_names, entry->noun));
    mdl_frame_add_choice(mdl_json_add_object(to, "action"), actions,
                         mdl_names_find(actions, entry->action));
    mdl_json_add_string(to, "noun_id", entry->noun_id);
    mdl_json_add_string(to, "by_key", entry->key_id);
    mdl_json_add_string(to, "key_name", entry->key_name);
    mdl_json_add_string(to, "by_user", entry->user);
    mdl_json_add_bool(to, "by_command", entry->via == MDL_VIA_COMMAND);
    mdl_json_add_string(to, "detail", entry->detail);
}

static const mdl_filter_field_t fields[] = {
    {"who", .max = MDL_MEMBER_USER_MAX},
    {"noun", .names = mdl_audit_noun_names},
    {0},
};

static int audit_show(mdl_visit_t *visit)
{
    mdl_audit_list_t list = {.page = {.shop_id = visit->shop != NULL ? visit->shop->id : 0,
                                      .before = mdl_visit_before(visit),
                                      .limit = LINES},
                             .for_operator = visit->role >= MDL_ROLE_OPERATOR};
    mdl_filter_t filter;
    mdl_json_t *data, *entries;
    apr_status_t rv;

    if (mdl_filter_read(&filter, fields, visit) != APR_SUCCESS) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    list.who = mdl_filter_value(&filter, "who");
    list.noun = mdl_filter_value(&filter, "noun");
    if ((rv = mdl_visit_read(visit, mdl_audit_list_effect, &list)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_filter_add(data, &filter);
    mdl_json_add_bool(data, "has_entries", list.page.found->nelts > 0);
    mdl_json_add_string(data, "before", list.page.next);
    entries = mdl_json_add_array(data, "entries");
    for (int i = 0; i < list.page.found->nelts; i++) {
        audit_add_entry(mdl_json_add_object(entries, NULL),
                        APR_ARRAY_IDX(list.page.found, i, const mdl_audit_t *));
    }
    return mdl_frame_send(visit, HTTP_OK, "audit.html", data, NULL);
}

const mdl_page_t mdl_audit_pages[] = {
    {"audit", .sees = MDL_ROLE_OPERATOR, .get = audit_show},
    {"{}/audit", .sees = MDL_ROLE_OWNER, .get = audit_show},
    {0},
};
