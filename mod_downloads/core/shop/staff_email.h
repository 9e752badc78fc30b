/*
 * An email to a shop's staff: queued in the transaction that causes it, sent by the background
 * process, and then deleted.  Each email counts against daily budgets, which are separate from the
 * limits of emails to customers (docs/limits.md).
 */
#ifndef MDL_CORE_SHOP_STAFF_EMAIL_H
#define MDL_CORE_SHOP_STAFF_EMAIL_H

#include "base/text/json.h"
#include "core/problem.h"
#include "db/db.h"

/** The most emails within a day, of all kinds: to an address from all shops, and of a shop. */
#define MDL_STAFF_EMAILS_OF_ADDRESS 20
#define MDL_STAFF_EMAILS_OF_SHOP    40

/** The same for emails that ask to confirm an address. */
#define MDL_CONFIRMATIONS_OF_ADDRESS 3
#define MDL_CONFIRMATIONS_OF_SHOP    10

/** The name of the templates of that email. */
#define MDL_STAFF_EMAIL_CONFIRM "confirm"

/** In place of the name of templates: a test of another email, whose name and language are in data
    as "template" and "language". */
#define MDL_STAFF_EMAIL_TEST "test"

typedef struct {
    const char *to;
    const char *template; /* name of its templates, without ".subject", ".txt" and ".html" */
    mdl_json_t *data;     /* for the templates */
    int wanted;           /* whether the address may still get it */
} mdl_staff_email_t;

/** Reads the addresses (const char *) that get a shop's emails: its owners' confirmed addresses or,
    with a kind of notice (core/shop/notice.h), those of members who are told of it at once.  If no
    owner has confirmed one, also the shop's, if that is confirmed. */
apr_status_t mdl_staff_email_recipients(mdl_db_t *db, apr_int64_t shop_id, const char *kind,
                                        apr_array_header_t **recipients, apr_pool_t *p);

/** Queues an email to each recipient while the budgets allow.  Sets "last" in data: whether the
    email uses up a budget. */
apr_status_t mdl_staff_email_queue(mdl_db_t *db, apr_int64_t shop_id, const char *kind,
                                   const char *template, mdl_json_t *data, apr_pool_t *p);

/** Queues an email to one confirmed address; *queued: whether the budgets allowed it. */
apr_status_t mdl_staff_email_notify(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                    const char *template, mdl_json_t *data, int *queued,
                                    apr_pool_t *p);

/** Queues the email that asks to confirm an address; *queued: whether the budgets allowed it. */
apr_status_t mdl_staff_email_ask(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                 int *queued, apr_pool_t *p);

/** Effect: queues a test of an email, within budgets of its own that are as large as those of all
    other kinds.  Refused: 429 too_many_tests. */
typedef struct {
    apr_int64_t shop_id;
    const char *address; /* of whoever asks for it */
    const char *template;
    const char *language;
    mdl_problem_t *problem;
} mdl_staff_email_test_t;
apr_status_t mdl_staff_email_test(mdl_db_t *db, apr_pool_t *p, mdl_staff_email_test_t *test);

/** Reads the email of a shop's job; APR_ENOENT when there is none. */
apr_status_t mdl_staff_email_find(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                                  mdl_staff_email_t *email, apr_pool_t *p);

/** Deletes the email of a finished job. */
apr_status_t mdl_staff_email_delete(mdl_db_t *db, const char *job_id, apr_pool_t *p);

#endif
