/*
 * Members: the users who may open a shop's settings.  Any of httpd's authentication modules
 * identifies the user; the database has the user's role in a shop.
 */
#ifndef MDL_CORE_SHOP_MEMBER_H
#define MDL_CORE_SHOP_MEMBER_H

#include "core/problem.h"
#include "core/shop/staff_address.h"
#include "db/db.h"

#define MDL_MEMBER_USER_MAX 255 /* bytes */
#define MDL_MEMBERS_MAX     100 /* members of a shop; operators; shops of a user */

/** What a member may do; each role includes those before it. */
typedef enum {
    MDL_ROLE_READ_ONLY, /* see everything but secrets */
    MDL_ROLE_STAFF,     /* act on orders */
    MDL_ROLE_OWNER,     /* manage keys and members; get the shop's emails */
    MDL_ROLE_OPERATOR   /* manage shops; member of every shop */
} mdl_role_t;
extern const char *const mdl_role_names[];

typedef struct {
    const char *user;
    apr_int64_t shop_id;   /* 0: an operator */
    const char *shop_name; /* NULL: an operator */
    mdl_role_t role;
    apr_time_t created_at;
    const char *address;       /* where the member gets emails: the one of their choice, else an
                                  owner's name; NULL: nowhere */
    int address_is_own;        /* whether it is of their choice */
    mdl_address_state_t email; /* of address */
} mdl_member_t;

/**
 * Effect: makes a user a member of a shop, or changes the role.  An owner whose name is an address
 * is asked to confirm it.  Refused: 400 when the name is invalid, or the role and shop_id don't go
 * together; 404 when there is no such shop; 409 when the shop has MDL_MEMBERS_MAX members, or the
 * user as many shops.
 */
typedef struct {
    mdl_member_t member; /* in: user, shop_id, role; out: all */
    mdl_problem_t *problem;
} mdl_member_put_t;
apr_status_t mdl_member_put(mdl_db_t *db, apr_pool_t *p, mdl_member_put_t *put);

/** Effect: ends a membership; shop_id is 0 for an operator's.  Refused: 404. */
typedef struct {
    const char *user;
    apr_int64_t shop_id;
    mdl_problem_t *problem;
} mdl_member_remove_t;
apr_status_t mdl_member_remove(mdl_db_t *db, apr_pool_t *p, mdl_member_remove_t *remove);

/** Effect: reads one membership; APR_ENOENT when there is none. */
typedef struct {
    const char *user;
    apr_int64_t shop_id;
    mdl_member_t *member; /* out */
} mdl_member_find_t;
apr_status_t mdl_member_find(mdl_db_t *db, apr_pool_t *p, mdl_member_find_t *find);

/** Effect: sets where a member gets emails, and asks to confirm that.  NULL: an owner gets them at
    the name again, if that is an address, and others nowhere.  Refused: 400 when it is no address,
    404 when the user is no member of the shop, as an operator is not. */
typedef struct {
    const char *user;
    apr_int64_t shop_id;
    const char *address;
    mdl_problem_t *problem;
} mdl_member_move_t;
apr_status_t mdl_member_move(mdl_db_t *db, apr_pool_t *p, mdl_member_move_t *move);

/** Effect: asks again to confirm where a member gets emails.  Refused: as
    mdl_staff_address_ask_again is. */
typedef struct {
    const char *user;
    apr_int64_t shop_id;
    mdl_problem_t *problem;
} mdl_member_ask_t;
apr_status_t mdl_member_ask(mdl_db_t *db, apr_pool_t *p, mdl_member_ask_t *ask);

/** Effect: reads members (mdl_member_t *): of a shop by name, of a user by shop, or all. */
typedef struct {
    apr_int64_t shop_id;         /* 0: those of user */
    const char *user;            /* NULL: those of all shops, operators first */
    apr_array_header_t *members; /* out */
} mdl_member_list_t;
apr_status_t mdl_member_list(mdl_db_t *db, apr_pool_t *p, mdl_member_list_t *list);

/** Reads a user's role in a shop; APR_ENOENT when there is none.  Shop 0 has only operators. */
apr_status_t mdl_member_role(mdl_db_t *db, const char *user, apr_int64_t shop_id, mdl_role_t *role,
                             apr_pool_t *p);

#endif
