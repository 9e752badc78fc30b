#include "core/shop/notice.h"

#include <string.h>

#include <apr_time.h>

#include "core/shop/member.h"
#include "core/shop/staff_email.h"

#define HOUR apr_time_from_sec(3600)
#define DAY  (24 * HOUR)

const char *const mdl_notice_kind_names[] = {[MDL_NOTICE_HELD] = "held",
                                             [MDL_NOTICE_BOUNCED] = "bounced",
                                             [MDL_NOTICE_IMPORT_FAILED] = "import_failed",
                                             [MDL_NOTICE_KEYS_LOW] = "keys_low",
                                             [MDL_NOTICE_HELP] = "help",
                                             NULL};
const char *const mdl_notice_choice_names[] = {
    [MDL_NOTICE_OFF] = "off", [MDL_NOTICE_NOW] = "now", [MDL_NOTICE_DAILY] = "daily", NULL};

apr_status_t mdl_notice_add(mdl_db_t *db, mdl_notice_kind_t kind, apr_int64_t shop_id,
                            apr_pool_t *p)
{
    apr_time_t now = apr_time_now();

    return mdl_db_exec(db, NULL, p,
                       MDL_Q(NOTICE_ADD, .latest = now + DAY, .now = now, .shop_id = shop_id,
                             .kind = mdl_notice_kind_names[kind]));
}

apr_status_t mdl_notice_add_by_default(mdl_db_t *db, mdl_notice_kind_t kind, apr_int64_t shop_id,
                                       apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(
        db, NULL, p,
        MDL_Q(NOTICE_DEFAULT, .kind = mdl_notice_kind_names[kind], .shop_id = shop_id));

    return rv == APR_SUCCESS ? mdl_notice_add(db, kind, shop_id, p) : rv;
}

apr_status_t mdl_notice_add_daily(mdl_db_t *db, mdl_notice_kind_t kind, apr_int64_t shop_id,
                                  apr_pool_t *p)
{
    apr_time_t now = apr_time_now();

    return mdl_db_exec(db, NULL, p,
                       MDL_Q(NOTICE_ADD_DAILY, .latest = now + DAY, .now = now, .shop_id = shop_id,
                             .kind = mdl_notice_kind_names[kind]));
}

apr_status_t mdl_notice_add_of_email(mdl_db_t *db, mdl_notice_kind_t kind, apr_int64_t email_id,
                                     apr_pool_t *p)
{
    apr_time_t now = apr_time_now();

    return mdl_db_exec(db, NULL, p,
                       MDL_Q(NOTICE_ADD_OF_EMAIL, .latest = now + DAY, .now = now,
                             .email_id = email_id, .kind = mdl_notice_kind_names[kind]));
}

apr_status_t mdl_notice_choose(mdl_db_t *db, apr_pool_t *p, mdl_notice_choose_t *choose)
{
    mdl_member_find_t find = {.user = choose->user, .shop_id = choose->shop_id};
    apr_status_t rv = mdl_member_find(db, p, &find);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(choose->problem, 404, "not_found", "There is no such member.");
    }
    for (int i = 0; rv == APR_SUCCESS && i < MDL_NOTICE_KINDS; i++) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(NOTICE_CHOOSE, .shop_id = choose->shop_id, .user_name = choose->user,
                               .kind = mdl_notice_kind_names[i],
                               .choice = mdl_notice_choice_names[choose->choices[i]]));
    }
    return rv;
}

apr_status_t mdl_notice_read(mdl_db_t *db, apr_pool_t *p, mdl_notice_choose_t *choose)
{
    mdl_member_find_t find = {.user = choose->user, .shop_id = choose->shop_id};
    mdl_rows_t *rows;
    apr_status_t rv = mdl_member_find(db, p, &find);

    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    if (find.member->role == MDL_ROLE_OWNER) {
        choose->choices[MDL_NOTICE_KEYS_LOW] = MDL_NOTICE_NOW; /* as staff_told_now has it */
    }
    if (find.member->role >= MDL_ROLE_STAFF) {
        choose->choices[MDL_NOTICE_HELP] = MDL_NOTICE_NOW; /* as notice_default has it */
    }
    rv = mdl_db_select(db, &rows, p,
                       MDL_Q(NOTICE_LIST, .shop_id = choose->shop_id, .user_name = choose->user));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        choose->choices[mdl_rows_enum(rows, 0, mdl_notice_kind_names)] = mdl_rows_enum(
            rows, 1, mdl_notice_choice_names);
    }
    return rv;
}

apr_status_t mdl_notices_due(mdl_db_t *db, apr_pool_t *p, mdl_notices_due_t *due)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(NOTICES_DUE, .now = apr_time_now(), .limit = due->limit));

    due->members = apr_array_make(p, due->limit, sizeof(mdl_notice_to_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(due->members, mdl_notice_to_t) = (mdl_notice_to_t){
            .shop_id = mdl_rows_int(rows, 0), .user = mdl_rows_text(rows, 1)};
    }
    return rv;
}

/* --- sending --- */

/* What a member is to be told of one kind. */
typedef struct {
    const char *kind;
    mdl_notice_choice_t choice;
    apr_int64_t waiting;
    apr_time_t sent_at;
} notice_t;

/* The notices of an email. */
typedef struct {
    const mdl_notice_to_t *to;
    const char *address;
    apr_time_t now;
    const notice_t *notices[MDL_NOTICE_KINDS];
    int count;
} letter_t;

/* Whether a time is past: it was within the period, and not after a clock that was set back. */
static int period_is_over(apr_time_t began, apr_interval_time_t period, apr_time_t now)
{
    return began <= now - period || began > now;
}

static apr_status_t letter_postpone(mdl_db_t *db, const letter_t *letter, apr_time_t until,
                                    apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; rv == APR_SUCCESS && i < letter->count; i++) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(NOTICE_POSTPONE, .due_at = until, .shop_id = letter->to->shop_id,
                               .user_name = letter->to->user, .kind = letter->notices[i]->kind));
    }
    return rv;
}

static apr_status_t letter_told(mdl_db_t *db, const letter_t *letter, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; rv == APR_SUCCESS && i < letter->count; i++) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(NOTICE_TOLD, .now = letter->now, .shop_id = letter->to->shop_id,
                               .user_name = letter->to->user, .kind = letter->notices[i]->kind));
    }
    return rv;
}

/* What the day's budgets don't allow waits for an hour.  Without an address nobody is told. */
static apr_status_t letter_send(mdl_db_t *db, const letter_t *letter, int *queued, apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    apr_status_t rv;

    *queued = 0;
    if (letter->address == NULL) {
        return letter_told(db, letter, p);
    }
    for (int i = 0; i < letter->count; i++) {
        mdl_json_add_int(mdl_json_add_object(data, letter->notices[i]->kind), "count",
                         letter->notices[i]->waiting);
    }
    mdl_json_add_string(data, "user", letter->to->user);
    rv = mdl_staff_email_notify(db, letter->to->shop_id, letter->address, MDL_STAFF_EMAIL_NOTICES,
                                data, queued, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    return *queued ? letter_told(db, letter, p)
                   : letter_postpone(db, letter, letter->now + HOUR, p);
}

/* The member's row says whether the day has had its email. */
static apr_status_t letter_send_daily(mdl_db_t *db, const letter_t *letter, apr_pool_t *p)
{
    apr_int64_t claimed;
    int queued;
    apr_status_t rv = mdl_db_exec(
        db, &claimed, p,
        MDL_Q(NOTICE_CLAIM_DAY, .now = letter->now, .user_name = letter->to->user,
              .shop_id = letter->to->shop_id, .before = letter->now - DAY));

    if (rv == APR_SUCCESS && claimed == 0) {
        return letter_postpone(db, letter, letter->now + HOUR, p);
    }
    if (rv != APR_SUCCESS || (rv = letter_send(db, letter, &queued, p)) != APR_SUCCESS || queued) {
        return rv;
    }
    return mdl_db_exec(
        db, NULL, p,
        MDL_Q(NOTICE_UNCLAIM_DAY, .user_name = letter->to->user, .shop_id = letter->to->shop_id));
}

static apr_status_t letter_send_now(mdl_db_t *db, letter_t letter, const notice_t *notice,
                                    apr_pool_t *p)
{
    int queued;

    letter.notices[0] = notice;
    letter.count = 1;
    return period_is_over(notice->sent_at, HOUR, letter.now)
               ? letter_send(db, &letter, &queued, p)
               : letter_postpone(db, &letter, notice->sent_at + HOUR, p);
}

static apr_status_t notices_lock(mdl_db_t *db, const mdl_notice_to_t *to, apr_time_t now,
                                 notice_t *notices, int *count, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(NOTICE_LOCK, .shop_id = to->shop_id, .user_name = to->user, .now = now));

    for (*count = 0; rv == APR_SUCCESS && *count < MDL_NOTICE_KINDS && mdl_rows_next(rows);) {
        notices[(*count)++] = (notice_t){
            .kind = mdl_rows_text(rows, 0),
            .choice = mdl_rows_enum(rows, 1, mdl_notice_choice_names),
            .waiting = mdl_rows_int(rows, 2),
            .sent_at = mdl_rows_int(rows, 3),
        };
    }
    return rv;
}

apr_status_t mdl_notice_send(mdl_db_t *db, apr_pool_t *p, mdl_notice_to_t *to)
{
    mdl_member_find_t find = {.user = to->user, .shop_id = to->shop_id};
    letter_t daily = {.to = to, .now = apr_time_now()};
    notice_t notices[MDL_NOTICE_KINDS];
    int count;
    apr_status_t rv = notices_lock(db, to, daily.now, notices, &count, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_member_find(db, p, &find);
    if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        return rv;
    }
    if (rv == APR_SUCCESS && find.member->email == MDL_ADDRESS_CONFIRMED) {
        daily.address = find.member->address;
    }
    rv = APR_SUCCESS;
    for (int i = 0; rv == APR_SUCCESS && i < count; i++) {
        if (notices[i].choice == MDL_NOTICE_DAILY) {
            daily.notices[daily.count++] = &notices[i];
        } else {
            rv = letter_send_now(db,
                                 (letter_t){.to = to, .now = daily.now, .address = daily.address},
                                 &notices[i], p);
        }
    }
    return rv == APR_SUCCESS && daily.count > 0 ? letter_send_daily(db, &daily, p) : rv;
}
