#include "ctl/member.h"

#include <stddef.h>

#include "base/names.h"
#include "core/shop/member.h"
#include "core/shop/staff_session.h"

static const mdl_field_t fields[] = {
    {"user", MDL_FIELD_TEXT, offsetof(mdl_member_t, user), 1, NULL},
    {"role", MDL_FIELD_ENUM, offsetof(mdl_member_t, role), 1, mdl_role_names},
    {"shop_id", MDL_FIELD_ID, offsetof(mdl_member_t, shop_id), 1, NULL},
    {"shop_name", MDL_FIELD_TEXT, offsetof(mdl_member_t, shop_name), 1, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_member_t, created_at), 1, NULL},
    {"email", MDL_FIELD_ENUM, offsetof(mdl_member_t, email), 1, mdl_address_state_names},
    {0},
};

MDL_EFFECT(mdl_member_put, mdl_member_put_t *)

/* A sentence on the confirmation of an owner's address, appended to the result. */
static const char *const email_words[] = {
    [MDL_ADDRESS_NONE] = "",
    [MDL_ADDRESS_NOT_ASKED] = " No link to confirm the address could be sent today: try "
                              "downloadsctl member ask tomorrow.",
    [MDL_ADDRESS_ASKED] = " The address gets the shop's emails once the link that was sent to it "
                          "is confirmed.",
    [MDL_ADDRESS_CONFIRMED] = " The address is confirmed.",
};

int mdl_ctl_member_add(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    int role = mdl_names_find(mdl_role_names, ctl->arguments[1]);
    mdl_member_put_t put = {.member = {.user = ctl->arguments[0], .shop_id = ctl->shop_id},
                            .problem = &problem};
    int failed;

    if (role < 0) {
        return mdl_ctl_fail(ctl, MDL_EXIT_USAGE, "usage",
                            "A role is read-only, staff, owner or operator.");
    }
    put.member.role = (mdl_role_t)role;
    ctl->audit.detail = mdl_role_names[role];
    failed = mdl_ctl_write(ctl, mdl_member_put_effect, &put, &problem);
    if (failed) {
        return failed;
    }
    if (put.member.shop_id != 0) {
        mdl_printer_result(ctl->output, fields, &put.member,
                           "%s is a member of shop %" APR_INT64_T_FMT ": %s.%s", put.member.user,
                           put.member.shop_id, mdl_role_names[role], email_words[put.member.email]);
    } else {
        mdl_printer_result(ctl->output, fields, &put.member, "%s is an operator.", put.member.user);
    }
    return MDL_EXIT_DONE;
}

MDL_EFFECT(mdl_member_list, mdl_member_list_t *)

int mdl_ctl_member_list(mdl_ctl_t *ctl)
{
    mdl_member_list_t list = {.shop_id = ctl->shop_id};
    int failed = mdl_ctl_read(ctl, mdl_member_list_effect, &list, NULL);

    if (!failed) {
        mdl_printer_list(ctl->output, fields, list.members, "There is no member.");
    }
    return failed;
}

MDL_EFFECT(mdl_member_remove, mdl_member_remove_t *)

int mdl_ctl_member_remove(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    mdl_member_remove_t remove = {
        .user = ctl->arguments[0], .shop_id = ctl->shop_id, .problem = &problem};
    mdl_member_t member = {.user = remove.user, .shop_id = remove.shop_id};
    int failed = mdl_ctl_write(ctl, mdl_member_remove_effect, &remove, &problem);

    if (!failed) {
        mdl_printer_note(ctl->output, "%s is removed.", member.user);
        mdl_printer_document(ctl->output, mdl_json_object(ctl->p));
    }
    return failed;
}

MDL_EFFECT(mdl_staff_address_ask_again, mdl_staff_address_ask_t *)

int mdl_ctl_member_ask(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    mdl_staff_address_ask_t ask = {
        .shop_id = ctl->shop_id, .address = ctl->arguments[0], .problem = &problem};
    int failed = mdl_ctl_write(ctl, mdl_staff_address_ask_again_effect, &ask, &problem);

    if (!failed) {
        mdl_printer_note(ctl->output, "%s is sent a link to confirm the address.", ask.address);
        mdl_printer_document(ctl->output, mdl_json_object(ctl->p));
    }
    return failed;
}

typedef struct {
    const char *user;
    apr_int64_t ended;
} sign_out_t;

static apr_status_t sign_out_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    sign_out_t *sign_out = arg;

    return mdl_staff_session_end_all(db, sign_out->user, &sign_out->ended, p);
}

int mdl_ctl_member_sign_out(mdl_ctl_t *ctl)
{
    static const mdl_field_t of_sign_out[] = {
        {"user", MDL_FIELD_TEXT, offsetof(sign_out_t, user), 1, NULL},
        {"sessions", MDL_FIELD_NUMBER, offsetof(sign_out_t, ended), 1, NULL},
        {0},
    };
    sign_out_t sign_out = {.user = ctl->arguments[0]};
    int failed = mdl_ctl_write(ctl, sign_out_effect, &sign_out, NULL);

    if (!failed) {
        mdl_printer_result(ctl->output, of_sign_out, &sign_out,
                           "%s is signed out: %" APR_INT64_T_FMT " sessions have ended.",
                           sign_out.user, sign_out.ended);
    }
    return failed;
}
