/*
 * What members are told by email of what happens in a shop: for each kind nothing, an email at
 * once, or one email a day that counts all kinds.  An email at once comes at most once an hour for
 * a kind; what happens in between is counted in the next.  What happens is counted in its own
 * transaction, and the background process sends it.
 */
#ifndef MDL_CORE_SHOP_NOTICE_H
#define MDL_CORE_SHOP_NOTICE_H

#include "core/problem.h"
#include "db/db.h"

typedef enum {
    MDL_NOTICE_HELD,          /* an order is held for review */
    MDL_NOTICE_BOUNCED,       /* an email to a customer came back */
    MDL_NOTICE_IMPORT_FAILED, /* an import, or the hashing of an upload */
    MDL_NOTICE_KEYS_LOW,      /* a stock of license keys fell to its threshold */
    MDL_NOTICE_HELP,          /* a customer asks for help */
    MDL_NOTICE_KINDS
} mdl_notice_kind_t;
extern const char *const mdl_notice_kind_names[];

typedef enum { MDL_NOTICE_OFF, MDL_NOTICE_NOW, MDL_NOTICE_DAILY } mdl_notice_choice_t;
extern const char *const mdl_notice_choice_names[];

/** The name of the templates.  They are given, of each kind that there is, an object of the kind's
    name with "count"; "user" is the member's name. */
#define MDL_STAFF_EMAIL_NOTICES "notices"

/** Counts one of a kind for the shop's members who are to be told. */
apr_status_t mdl_notice_add(mdl_db_t *db, mdl_notice_kind_t kind, apr_int64_t shop_id,
                            apr_pool_t *p);

/** The same; staff and owners without a choice are told of it at once. */
apr_status_t mdl_notice_add_by_default(mdl_db_t *db, mdl_notice_kind_t kind, apr_int64_t shop_id,
                                       apr_pool_t *p);

/** The same as mdl_notice_add for those who are told daily: who is told at once gets an email of
    its own, by mdl_staff_email_queue, and owners without a choice are told of KEYS_LOW at once. */
apr_status_t mdl_notice_add_daily(mdl_db_t *db, mdl_notice_kind_t kind, apr_int64_t shop_id,
                                  apr_pool_t *p);

/** The same for the shop of an email to a customer. */
apr_status_t mdl_notice_add_of_email(mdl_db_t *db, mdl_notice_kind_t kind, apr_int64_t email_id,
                                     apr_pool_t *p);

/** Effect: a member's choices.  Refused: 404 when the user is no member of the shop. */
typedef struct {
    const char *user;
    apr_int64_t shop_id;
    mdl_notice_choice_t choices[MDL_NOTICE_KINDS];
    mdl_problem_t *problem;
} mdl_notice_choose_t;
apr_status_t mdl_notice_choose(mdl_db_t *db, apr_pool_t *p, mdl_notice_choose_t *choose);

/** Effect: reads them into choices; without one an owner is told of KEYS_LOW and
    HELP at once, other staff of HELP, and of nothing else. */
apr_status_t mdl_notice_read(mdl_db_t *db, apr_pool_t *p, mdl_notice_choose_t *choose);

/** A member who is to be told something. */
typedef struct {
    apr_int64_t shop_id;
    const char *user;
} mdl_notice_to_t;

/** Effect: finds members (mdl_notice_to_t) who are to be told something, those first who have
    waited the longest.  A member may be named several times. */
typedef struct {
    int limit;
    apr_array_header_t *members; /* out */
} mdl_notices_due_t;
apr_status_t mdl_notices_due(mdl_db_t *db, apr_pool_t *p, mdl_notices_due_t *due);

/** Effect: queues the emails to a member that may be sent now, and says when the others may. */
apr_status_t mdl_notice_send(mdl_db_t *db, apr_pool_t *p, mdl_notice_to_t *to);

#endif
