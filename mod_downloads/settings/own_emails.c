/*
 * A member's own emails: each member's, for whatever role.
 */
#include "settings/pages.h"

#include "base/names.h"
#include "core/shop/notice.h"
#include "settings/frame.h"

MDL_EFFECT(mdl_member_find, mdl_member_find_t *)
MDL_EFFECT(mdl_notice_read, mdl_notice_choose_t *)

static void own_emails_add_choices(mdl_json_t *member, const mdl_notice_choose_t *choose)
{
    mdl_json_t *kinds = mdl_json_add_array(member, "kinds");

    for (int i = 0; i < MDL_NOTICE_KINDS; i++) {
        mdl_json_t *kind = mdl_json_add_object(kinds, NULL);

        mdl_json_add_string(kind, "kind", mdl_notice_kind_names[i]);
        mdl_frame_add_choice(kind, mdl_notice_choice_names, (int)choose->choices[i]);
    }
}

static int own_emails_send(mdl_visit_t *visit, int status)
{
    mdl_member_find_t find = {.user = visit->user, .shop_id = visit->shop->id};
    mdl_notice_choose_t choose = {.user = visit->user, .shop_id = visit->shop->id};
    apr_status_t rv = mdl_visit_read(visit, mdl_notice_read_effect, &choose);
    mdl_json_t *data, *member;

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_read(visit, mdl_member_find_effect, &find);
    }
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
        own_emails_add_choices(member, &choose);
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

MDL_EFFECT(mdl_notice_choose, mdl_notice_choose_t *)

static int own_emails_choose(mdl_visit_t *visit)
{
    mdl_notice_choose_t choose = {
        .user = visit->user, .shop_id = visit->shop->id, .problem = &visit->problem};

    visit->audit.noun_id = visit->user;
    for (int i = 0; i < MDL_NOTICE_KINDS; i++) {
        int choice = mdl_names_find(mdl_notice_choice_names,
                                    mdl_visit_field(visit, mdl_notice_kind_names[i]));

        if (choice < 0) {
            return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
        }
        choose.choices[i] = (mdl_notice_choice_t)choice;
    }
    return own_emails_done(visit, mdl_visit_write(visit, mdl_notice_choose_effect, &choose));
}

const mdl_page_t mdl_own_email_pages[] = {
    {"{}/own-emails", "member", "address_changed", .sees = MDL_ROLE_READ_ONLY,
     .get = own_emails_show, .acts = MDL_ROLE_READ_ONLY, .post = own_emails_move,
     .done = "address_saved"},
    {"{}/own-emails/ask", "member", "asked", .acts = MDL_ROLE_READ_ONLY, .post = own_emails_ask,
     .done = "member_asked"},
    {"{}/own-emails/notices", "member", "changed", .acts = MDL_ROLE_READ_ONLY,
     .post = own_emails_choose, .done = "notices_saved"},
    {0},
};
