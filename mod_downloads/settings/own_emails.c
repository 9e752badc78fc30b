/*
 * A member's own emails: each member's, for whatever role.
 */
#include "settings/pages.h"

#include "settings/frame.h"

MDL_EFFECT(mdl_member_find, mdl_member_find_t *)

static int own_emails_send(mdl_visit_t *visit, int status)
{
    mdl_member_find_t find = {.user = visit->user, .shop_id = visit->shop->id};
    apr_status_t rv = mdl_visit_read(visit, mdl_member_find_effect, &find);
    mdl_json_t *data, *member;

    if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    if (rv == APR_SUCCESS) {
        member = mdl_json_add_object(data, "member");
        mdl_json_add_string(member, "address", find.member->address);
        mdl_json_add_string(member, "own_address",
                            status != HTTP_OK             ? mdl_visit_field(visit, "email")
                            : find.member->address_is_own ? find.member->address
                                                          : NULL);
        mdl_frame_add_choice(mdl_json_add_object(member, "email"), mdl_address_state_names,
                             (int)find.member->email);
    }
    return mdl_frame_send(visit, status, "own_emails.html", data, NULL);
}

static int own_emails_show(mdl_visit_t *visit)
{
    return own_emails_send(visit, HTTP_OK);
}

static int own_emails_done(mdl_visit_t *visit, apr_status_t rv)
{
    return rv == MDL_EPROBLEM ? own_emails_send(visit, visit->problem.status)
                              : mdl_frame_done(visit, rv, "own-emails");
}

MDL_EFFECT(mdl_member_move, mdl_member_move_t *)

static int own_emails_move(mdl_visit_t *visit)
{
    mdl_member_move_t move = {.user = visit->user,
                              .shop_id = visit->shop->id,
                              .address = mdl_visit_field(visit, "email"),
                              .problem = &visit->problem};

    visit->audit.noun_id = visit->user;
    return own_emails_done(visit, mdl_visit_write(visit, mdl_member_move_effect, &move));
}

MDL_EFFECT(mdl_member_ask, mdl_member_ask_t *)

static int own_emails_ask(mdl_visit_t *visit)
{
    mdl_member_ask_t ask = {
        .user = visit->user, .shop_id = visit->shop->id, .problem = &visit->problem};

    visit->audit.noun_id = visit->user;
    return own_emails_done(visit, mdl_visit_write(visit, mdl_member_ask_effect, &ask));
}

const mdl_page_t mdl_own_email_pages[] = {
    {"{}/own-emails", "member", "address_changed", .sees = MDL_ROLE_READ_ONLY,
     .get = own_emails_show, .acts = MDL_ROLE_READ_ONLY, .post = own_emails_move,
     .done = "address_saved"},
    {"{}/own-emails/ask", "member", "asked", .acts = MDL_ROLE_READ_ONLY, .post = own_emails_ask,
     .done = "member_asked"},
    {0},
};
