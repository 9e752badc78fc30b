#include "core/shop/member.h"

#include <string.h>

#include <apr_time.h>

#include "base/mail/mime.h"
#include "base/text/utf8.h"
#include "core/shop/shop.h"

#define LIST_MAX 10000 /* members of all shops, for downloadsctl */

const char *const mdl_role_names[] = {[MDL_ROLE_READ_ONLY] = "read-only",
                                      [MDL_ROLE_STAFF] = "staff",
                                      [MDL_ROLE_OWNER] = "owner",
                                      [MDL_ROLE_OPERATOR] = "operator",
                                      NULL};

static apr_status_t member_check(mdl_member_put_t *put)
{
    const mdl_member_t *member = &put->member;

    if (strlen(member->user) > MDL_MEMBER_USER_MAX) {
        return mdl_problem_set(put->problem, 400, "user_too_long",
                               "This name is too long: shorten it to 63 characters.");
    }
    if (!mdl_utf8_valid(member->user) || !mdl_utf8_is_name(member->user, MDL_MEMBER_USER_MAX)) {
        return mdl_problem_set(put->problem, 400, "invalid_user",
                               "Give the name that the user signs in with, in one line.");
    }
    if ((member->role == MDL_ROLE_OPERATOR) != (member->shop_id == 0)) {
        return mdl_problem_set(put->problem, 400, "invalid_role",
                               "An operator is a member of every shop, all others of one.");
    }
    return APR_SUCCESS;
}

/* Checks both limits with the shop's row locked, so that new members are counted one by one. */
static apr_status_t member_check_room(mdl_db_t *db, mdl_member_put_t *put, apr_pool_t *p)
{
    mdl_member_list_t of_shop = {.shop_id = put->member.shop_id};
    mdl_member_list_t of_user = {.user = put->member.user};
    apr_status_t rv;

    if ((rv = mdl_shop_lock(db, of_shop.shop_id, p)) == APR_ENOENT) {
        return mdl_problem_set(put->problem, 404, "not_found", "There is no such shop.");
    }
    if (rv != APR_SUCCESS || (rv = mdl_member_list(db, p, &of_shop)) != APR_SUCCESS ||
        (rv = mdl_member_list(db, p, &of_user)) != APR_SUCCESS) {
        return rv;
    }
    if (of_shop.members->nelts > MDL_MEMBERS_MAX || of_user.members->nelts > MDL_MEMBERS_MAX) {
        return mdl_problem_set(put->problem, 409, "too_many_members",
                               "A shop has at most 100 members, and a user at most 100 shops.");
    }
    return APR_SUCCESS;
}

apr_status_t mdl_member_ask(mdl_db_t *db, apr_pool_t *p, mdl_member_ask_t *ask)
{
    mdl_member_find_t find = {.user = ask->user, .shop_id = ask->shop_id};
    apr_status_t rv = mdl_member_find(db, p, &find);
    mdl_staff_address_ask_t again = {.shop_id = ask->shop_id, .problem = ask->problem};

    if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        return rv;
    }
    again.address = rv == APR_SUCCESS ? find.member->address : NULL;
    return mdl_staff_address_ask_again(db, p, &again);
}

apr_status_t mdl_member_remove(mdl_db_t *db, apr_pool_t *p, mdl_member_remove_t *remove)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(MEMBER_DELETE, .user_name = remove->user, .shop_id = remove->shop_id));

    if (rv == APR_ENOENT) {
        return mdl_problem_set(remove->problem, 404, "not_found", "There is no such member.");
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(
            db, NULL, p,
            MDL_Q(NOTICE_DELETE, .shop_id = remove->shop_id, .user_name = remove->user));
    }
    return rv == APR_SUCCESS
               ? mdl_staff_address_forget(db, remove->shop_id, mdl_rows_text(row, 0), p)
               : rv;
}

static mdl_member_t *member_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_member_t *member = apr_pcalloc(p, sizeof *member);

    member->user = MDL_TEXT(row, member, user_name);
    MDL_READ(row, member, member, shop_id, created_at);
    member->role = MDL_ENUM(row, member, role, mdl_role_names);
    member->shop_name = MDL_TEXT(row, member, name);
    member->address = MDL_TEXT(row, member, email);
    member->address_is_own = member->address != NULL;
    if (member->address == NULL && member->role == MDL_ROLE_OWNER &&
        mdl_mime_address_valid(member->user)) {
        member->address = member->user;
    }
    member->email = mdl_staff_address_state(member->address, MDL_INT(row, member, asked_at),
                                            MDL_INT(row, member, confirmed_at));
    return member;
}

apr_status_t mdl_member_find(mdl_db_t *db, apr_pool_t *p, mdl_member_find_t *find)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(MEMBER_FIND, .user_name = find->user, .shop_id = find->shop_id));

    if (rv == APR_SUCCESS) {
        find->member = member_of_row(row, p);
    }
    return rv;
}

/* Asks the address that gets the member's emails now, if there is one. */
static apr_status_t member_ask(mdl_db_t *db, mdl_member_find_t *find, apr_pool_t *p)
{
    apr_status_t rv = mdl_member_find(db, p, find);

    return rv == APR_SUCCESS && find->member->address != NULL
               ? mdl_staff_address_ask(db, find->shop_id, find->member->address,
                                       &find->member->email, p)
               : rv;
}

apr_status_t mdl_member_put(mdl_db_t *db, apr_pool_t *p, mdl_member_put_t *put)
{
    mdl_member_t *member = &put->member;
    mdl_member_find_t find;
    mdl_rows_t *row;
    apr_status_t rv = member_check(put);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(MEMBER_PUT, .user_name = member->user, .shop_id = member->shop_id,
                                 .role = mdl_role_names[member->role], .now = apr_time_now()));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    member->created_at = mdl_rows_int(row, 0);
    if (member->shop_id == 0 || (rv = member_check_room(db, put, p)) != APR_SUCCESS) {
        return rv;
    }
    if (member->role != MDL_ROLE_OWNER) {
        return APR_SUCCESS;
    }
    find = (mdl_member_find_t){.user = member->user, .shop_id = member->shop_id};
    if ((rv = member_ask(db, &find, p)) == APR_SUCCESS) {
        member->email = find.member->email;
    }
    return rv;
}

apr_status_t mdl_member_move(mdl_db_t *db, apr_pool_t *p, mdl_member_move_t *move)
{
    mdl_member_find_t find = {.user = move->user, .shop_id = move->shop_id};
    const char *before;
    apr_status_t rv;

    if (move->address != NULL && !mdl_mime_address_valid(move->address)) {
        return mdl_problem_set(move->problem, 400, "invalid_member_email",
                               "This is no email address.");
    }
    if ((rv = mdl_shop_lock(db, move->shop_id, p)) != APR_SUCCESS) {
        return rv;
    }
    if ((rv = mdl_member_find(db, p, &find)) == APR_ENOENT) {
        return mdl_problem_set(move->problem, 404, "not_found", "There is no such member.");
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    before = find.member->address;
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(MEMBER_SET_EMAIL, .email = move->address, .user_name = move->user,
                           .shop_id = move->shop_id));
    if (rv == APR_SUCCESS && before != NULL) {
        rv = mdl_staff_address_forget(db, move->shop_id, before, p);
    }
    return rv == APR_SUCCESS ? member_ask(db, &find, p) : rv;
}

apr_status_t mdl_member_list(mdl_db_t *db, apr_pool_t *p, mdl_member_list_t *list)
{
    apr_int64_t limit = MDL_MEMBERS_MAX + 1;
    mdl_rows_t *rows;
    apr_status_t rv;

    list->members = apr_array_make(p, 8, sizeof(mdl_member_t *));
    if (list->shop_id != 0) {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(MEMBER_LIST_OF_SHOP, .shop_id = list->shop_id, .limit = limit));
    } else if (list->user != NULL) {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(MEMBER_LIST_OF_USER, .user_name = list->user, .limit = limit));
    } else {
        rv = mdl_db_select(db, &rows, p, MDL_Q(MEMBER_LIST, LIST_MAX));
    }
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(list->members, mdl_member_t *) = member_of_row(rows, p);
    }
    return rv;
}

apr_status_t mdl_member_role(mdl_db_t *db, const char *user, apr_int64_t shop_id, mdl_role_t *role,
                             apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(MEMBER_ROLE, .user_name = user, .shop_id = shop_id));

    if (rv == APR_SUCCESS) {
        *role = mdl_rows_enum(row, 0, mdl_role_names);
    }
    return rv;
}
