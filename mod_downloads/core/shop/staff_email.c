#include "core/shop/staff_email.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/ulid.h"
#include "core/job.h"

#define DAY apr_time_from_sec(86400)

/* The most emails of a kind within a day. */
typedef struct {
    const char *name;
    apr_int64_t of_shop, of_address;
} budget_t;

static const budget_t notices = {"email", MDL_STAFF_EMAILS_OF_SHOP, MDL_STAFF_EMAILS_OF_ADDRESS};
static const budget_t confirmations = {"confirmation", MDL_CONFIRMATIONS_OF_SHOP,
                                       MDL_CONFIRMATIONS_OF_ADDRESS};
static const budget_t tests = {"test", MDL_STAFF_EMAILS_OF_SHOP, MDL_STAFF_EMAILS_OF_ADDRESS};

static apr_status_t email_insert(mdl_db_t *db, apr_int64_t shop_id, const char *to,
                                 const char *template, const mdl_json_t *data, apr_pool_t *p)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_STAFF_EMAIL,
                     .lane = MDL_LANE_MAIL,
                     .shop_id = shop_id,
                     .max_attempts = MDL_JOB_MAIL_ATTEMPTS};
    apr_status_t rv = mdl_job_insert(db, &job, p);

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(STAFF_EMAIL_INSERT, .job_id = job.id, .recipient = to,
                                   .template = template, .data = mdl_json_text(data, NULL, p)))
               : rv;
}

/* *left gets how many are left within the day; -1: there was none left to take. */
static apr_status_t budget_take_one(mdl_db_t *db, const char *name, apr_int64_t most,
                                    apr_int64_t *left, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(STAFF_BUDGET_TAKE, .name = name, .now = apr_time_now(), .most = most));

    *left = rv == APR_SUCCESS ? most - mdl_rows_int(row, 0) : -1;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

/* What is left of both budgets after an email. */
typedef struct {
    apr_int64_t of_shop, of_address;
} left_t;

static int left_allows(const left_t *left)
{
    return left->of_shop >= 0 && left->of_address >= 0;
}

/* Takes from the shop's budget first, which locks its row: transactions of a shop wait for each
   other there.  The address's budget is not touched if the shop's is used up. */
static apr_status_t budget_take(mdl_db_t *db, const budget_t *budget, apr_int64_t shop_id,
                                const char *address, left_t *left, apr_pool_t *p)
{
    const char *shop = apr_psprintf(p, "%s/shop/%" APR_INT64_T_FMT, budget->name, shop_id);
    char *mailbox = apr_pstrcat(p, budget->name, "/address/", address, NULL);
    apr_status_t rv = budget_take_one(db, shop, budget->of_shop, &left->of_shop, p);

    for (char *c = mailbox; *c != '\0'; c++) { /* Ada@ and ada@ are the same mailbox */
        *c = (char)apr_tolower(*c);
    }
    left->of_address = -1;
    return rv == APR_SUCCESS && left->of_shop >= 0
               ? budget_take_one(db, mailbox, budget->of_address, &left->of_address, p)
               : rv;
}

static apr_status_t budget_prune(mdl_db_t *db, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(STAFF_BUDGET_PRUNE, apr_time_now() - DAY));
}

static void recipients_add(apr_array_header_t *recipients, mdl_rows_t *rows)
{
    while (mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(recipients, const char *) = mdl_rows_text(rows, 0);
    }
}

apr_status_t mdl_staff_email_recipients(mdl_db_t *db, apr_int64_t shop_id, const char *kind,
                                        apr_array_header_t **recipients, apr_pool_t *p)
{
    mdl_rows_t *rows;
    int has_owner;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(STAFF_OWNERS_REACHED, .shop_id = shop_id, .limit = MDL_STAFF_EMAILS_OF_SHOP));

    *recipients = apr_array_make(p, 2, sizeof(const char *));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    recipients_add(*recipients, rows);
    has_owner = (*recipients)->nelts > 0;
    if (kind != NULL) {
        apr_array_clear(*recipients);
        if ((rv = mdl_db_select(db, &rows, p,
                                MDL_Q(STAFF_TOLD_NOW, .kind = kind, .shop_id = shop_id,
                                      .limit = MDL_STAFF_EMAILS_OF_SHOP))) != APR_SUCCESS) {
            return rv;
        }
        recipients_add(*recipients, rows);
    }
    if (!has_owner &&
        (rv = mdl_db_select(db, &rows, p, MDL_Q(STAFF_SHOP_REACHED, shop_id))) == APR_SUCCESS) {
        recipients_add(*recipients, rows);
    }
    return rv;
}

/* Takes from the budgets and, if they allow it, queues; *left says what is left. */
static apr_status_t notice_queue(mdl_db_t *db, apr_int64_t shop_id, const char *to,
                                 const char *template, mdl_json_t *data, left_t *left,
                                 apr_pool_t *p)
{
    apr_status_t rv = budget_take(db, &notices, shop_id, to, left, p);

    if (rv != APR_SUCCESS || !left_allows(left)) {
        return rv;
    }
    mdl_json_add_bool(data, "last", left->of_shop == 0 || left->of_address == 0);
    return email_insert(db, shop_id, to, template, data, p);
}

apr_status_t mdl_staff_email_notify(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                    const char *template, mdl_json_t *data, int *queued,
                                    apr_pool_t *p)
{
    left_t left = {0};
    apr_status_t rv = budget_prune(db, p);

    if (rv == APR_SUCCESS) {
        rv = notice_queue(db, shop_id, address, template, data, &left, p);
    }
    *queued = rv == APR_SUCCESS && left_allows(&left);
    return rv;
}

apr_status_t mdl_staff_email_queue(mdl_db_t *db, apr_int64_t shop_id, const char *kind,
                                   const char *template, mdl_json_t *data, apr_pool_t *p)
{
    apr_array_header_t *recipients;
    left_t left = {0};
    apr_status_t rv = budget_prune(db, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_staff_email_recipients(db, shop_id, kind, &recipients, p);
    }
    for (int i = 0; rv == APR_SUCCESS && left.of_shop >= 0 && i < recipients->nelts; i++) {
        rv = notice_queue(db, shop_id, APR_ARRAY_IDX(recipients, i, const char *), template, data,
                          &left, p);
    }
    return rv;
}

apr_status_t mdl_staff_email_ask(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                 int *queued, apr_pool_t *p)
{
    left_t left;
    apr_status_t rv = budget_prune(db, p);

    *queued = 0;
    if (rv != APR_SUCCESS ||
        (rv = budget_take(db, &confirmations, shop_id, address, &left, p)) != APR_SUCCESS ||
        !left_allows(&left)) {
        return rv;
    }
    *queued = 1;
    return email_insert(db, shop_id, address, MDL_STAFF_EMAIL_CONFIRM, mdl_json_object(p), p);
}

apr_status_t mdl_staff_email_test(mdl_db_t *db, apr_pool_t *p, mdl_staff_email_test_t *test)
{
    mdl_json_t *data = mdl_json_object(p);
    left_t left;
    apr_status_t rv = budget_prune(db, p);

    if (rv != APR_SUCCESS ||
        (rv = budget_take(db, &tests, test->shop_id, test->address, &left, p)) != APR_SUCCESS) {
        return rv;
    }
    if (!left_allows(&left)) {
        return mdl_problem_set(test->problem, 429, "too_many_tests",
                               "A day has 20 tests for an address at most, and 40 for a shop. Try "
                               "again tomorrow.");
    }
    mdl_json_add_string(data, "template", test->template);
    mdl_json_add_string(data, "language", test->language);
    return email_insert(db, test->shop_id, test->address, MDL_STAFF_EMAIL_TEST, data, p);
}

/* A confirmed address gets all emails but the question, an unconfirmed one gets only the question,
   and an address that nobody has any more gets nothing.  Whoever has asked for a test gets it. */
static int email_is_wanted(const mdl_staff_email_t *email, const mdl_rows_t *row)
{
    int asks = strcmp(email->template, MDL_STAFF_EMAIL_CONFIRM) == 0;

    if (strcmp(email->template, MDL_STAFF_EMAIL_TEST) == 0) {
        return 1;
    }
    return !MDL_NULL(row, staff_email_of_job, asked_at) &&
           MDL_NULL(row, staff_email_of_job, confirmed_at) == asks;
}

apr_status_t mdl_staff_email_find(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                                  mdl_staff_email_t *email, apr_pool_t *p)
{
    mdl_rows_t *row;
    const char *data, *why;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(STAFF_EMAIL_OF_JOB, .shop_id = shop_id, .job_id = job_id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    email->to = MDL_TEXT(row, staff_email_of_job, recipient);
    email->template = MDL_TEXT(row, staff_email_of_job, template);
    data = MDL_TEXT(row, staff_email_of_job, data);
    email->wanted = email_is_wanted(email, row);
    return mdl_json_parse(&email->data, data, strlen(data), MDL_JSON_MAX_VALUES, &why, p);
}

apr_status_t mdl_staff_email_delete(mdl_db_t *db, const char *job_id, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(STAFF_EMAIL_DELETE, job_id));
}
