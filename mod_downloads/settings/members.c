#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>

#include "base/crypto.h"
#include "base/names.h"
#include "base/text/present.h"
#include "core/version.h"
#include "settings/frame.h"

#define VERSION_LENGTH 12 /* bytes */

MDL_EFFECT(mdl_member_list, mdl_member_list_t *)

/* A digest of the members and their roles, by which forms tell what their page has shown. */
static const char *members_version(const mdl_member_list_t *list, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    const char *text = "";

    for (int i = 0; i < list->members->nelts; i++) {
        const mdl_member_t *each = APR_ARRAY_IDX(list->members, i, const mdl_member_t *);

        text = apr_pstrcat(p, text, each->user, "\n", mdl_role_names[each->role], "\n", NULL);
    }
    mdl_sha256(text, strlen(text), digest);
    return mdl_base64url(digest, VERSION_LENGTH, p);
}

static apr_status_t members_check_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_visit_t *visit = arg;
    mdl_member_list_t list = {.shop_id = visit->shop->id};
    apr_status_t rv;

    if ((rv = mdl_shop_lock(db, list.shop_id, p)) != APR_SUCCESS ||
        (rv = mdl_member_list(db, p, &list)) != APR_SUCCESS) {
        return rv;
    }
    return strcmp(mdl_visit_field(visit, "seen"), members_version(&list, p)) == 0
               ? APR_SUCCESS
               : mdl_version_refuse(&visit->problem);
}

/* Changes the members, unless they have changed since the form's page was shown. */
static apr_status_t members_write(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg)
{
    return mdl_visit_write_seen(visit, members_check_effect, effect, arg);
}

static int members_send(mdl_visit_t *visit, int status)
{
    mdl_member_list_t list = {.shop_id = visit->shop->id};
    int role = mdl_names_find(mdl_role_names, mdl_visit_field(visit, "role"));
    mdl_json_t *data, *members;
    apr_status_t rv = mdl_visit_read(visit, mdl_member_list_effect, &list);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_string(data, "seen", members_version(&list, visit->r->pool));
    mdl_json_add_string(data, "typed_user", mdl_visit_field(visit, "user"));
    mdl_json_add_bool(data, "typed_owner", role == (int)MDL_ROLE_OWNER);
    mdl_json_add_bool(data, "typed_reader", role == (int)MDL_ROLE_READ_ONLY);
    mdl_json_add_bool(data, "has_members", list.members->nelts > 0);
    if (visit->shop->email != NULL) {
        members = mdl_json_add_object(data, "shop_email");
        mdl_json_add_string(members, "address", visit->shop->email);
        mdl_frame_add_choice(members, mdl_address_state_names, (int)visit->shop->email_state);
    }
    members = mdl_json_add_array(data, "members");
    for (int i = 0; i < list.members->nelts; i++) {
        const mdl_member_t *each = APR_ARRAY_IDX(list.members, i, const mdl_member_t *);
        mdl_json_t *to = mdl_json_add_object(members, NULL);

        mdl_json_add_string(to, "name", each->user);
        mdl_frame_add_choice(to, mdl_role_names, (int)each->role);
        mdl_json_add_bool(to, "self", strcmp(each->user, visit->user) == 0);
        mdl_json_add_string(to, "address", each->address);
        mdl_json_add_bool(to, "address_is_own", each->address_is_own);
        mdl_frame_add_choice(mdl_json_add_object(to, "email"), mdl_address_state_names,
                             (int)each->email);
        mdl_present_date(to, "since", each->created_at);
    }
    return mdl_frame_send(visit, status, "members.html", data, NULL);
}

static int members_show(mdl_visit_t *visit)
{
    return members_send(visit, HTTP_OK);
}

/* Redirects to the list, or shows the form again with what was typed. */
static int members_done(mdl_visit_t *visit, apr_status_t rv)
{
    return rv == MDL_EPROBLEM ? members_send(visit, visit->problem.status)
                              : mdl_frame_done(visit, rv, "members");
}

MDL_EFFECT(mdl_member_put, mdl_member_put_t *)

/* A user who is a member already gets the role. */
static int members_add(mdl_visit_t *visit)
{
    const char *user = mdl_visit_field(visit, "user");
    int role = mdl_names_find(mdl_role_names, mdl_visit_field(visit, "role"));
    mdl_member_put_t put = {.member = {.user = user != NULL ? user : "",
                                       .shop_id = visit->shop->id,
                                       .role = (mdl_role_t)role},
                            .problem = &visit->problem};

    if (role < 0 || role == MDL_ROLE_OPERATOR) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    if (role != MDL_ROLE_OWNER && strcmp(put.member.user, visit->user) == 0) {
        mdl_problem_set(&visit->problem, HTTP_CONFLICT, "own_role",
                        "Nobody can lower their own role: ask another owner, or the operator.");
        return members_send(visit, HTTP_CONFLICT);
    }
    visit->audit.noun_id = user;
    visit->audit.detail = mdl_role_names[role];
    return members_done(visit, members_write(visit, mdl_member_put_effect, &put));
}

MDL_EFFECT(mdl_member_remove, mdl_member_remove_t *)

static int members_remove(mdl_visit_t *visit)
{
    const char *user = mdl_visit_field(visit, "user");
    mdl_member_remove_t remove = {
        .user = user != NULL ? user : "", .shop_id = visit->shop->id, .problem = &visit->problem};

    if (strcmp(remove.user, visit->user) == 0) {
        mdl_problem_set(&visit->problem, HTTP_CONFLICT, "own_membership",
                        "Nobody can remove themselves: ask another owner, or the operator.");
        return members_send(visit, HTTP_CONFLICT);
    }
    visit->audit.noun_id = user;
    return members_done(visit, members_write(visit, mdl_member_remove_effect, &remove));
}

MDL_EFFECT(mdl_staff_address_ask_again, mdl_staff_address_ask_t *)

/* Sends the email that confirms an address again: an owner's, or the shop's own. */
static int members_ask(mdl_visit_t *visit)
{
    const char *address = mdl_visit_field(visit, "user");
    mdl_staff_address_ask_t ask = {.shop_id = visit->shop->id,
                                   .address = address != NULL ? address : "",
                                   .problem = &visit->problem};

    visit->audit.noun_id = address;
    return members_done(visit, mdl_visit_write(visit, mdl_staff_address_ask_again_effect, &ask));
}

const mdl_page_t mdl_member_pages[] = {
    {"{}/members", "member", "saved", .sees = MDL_ROLE_OWNER, .get = members_show,
     .acts = MDL_ROLE_OWNER, .post = members_add, .done = "member_added"},
    {"{}/members/remove", "member", "deleted", .acts = MDL_ROLE_OWNER, .post = members_remove,
     .done = "member_removed"},
    {"{}/members/ask", "member", "asked", .acts = MDL_ROLE_OWNER, .post = members_ask,
     .done = "member_asked"},
    {0},
};
