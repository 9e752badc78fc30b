/*
 * An email to a shop's staff: queued in the transaction that causes it, sent by the background
 * process, and gone after that.  Each counts against budgets of a day that are the staff's alone
 * (docs/limits.md): what is sent to customers takes nothing from them, nor they from it.
 */
#ifndef MDL_CORE_SHOP_STAFF_EMAIL_H
#define MDL_CORE_SHOP_STAFF_EMAIL_H

#include "base/text/json.h"
#include "db/db.h"

/** How many emails within a day, over all of their kinds: to an address by all shops, of a shop to
    all addresses. */
#define MDL_STAFF_EMAILS_OF_ADDRESS 20
#define MDL_STAFF_EMAILS_OF_SHOP    40

/** The same of the emails that ask an address to be confirmed. */
#define MDL_CONFIRMATIONS_OF_ADDRESS 3
#define MDL_CONFIRMATIONS_OF_SHOP    10

/** The name of that email's templates. */
#define MDL_STAFF_EMAIL_CONFIRM "confirm"

typedef struct {
    const char *to;
    const char *template; /* the name of its templates, without ".subject", ".txt" and ".html" */
    mdl_json_t *data;     /* what they show */
    int wanted;           /* whether the address may still get it */
} mdl_staff_email_t;

/** Reads the addresses (const char *) that get a shop's emails: those of its owners that are
    confirmed; if there is none, that of the shop if it is confirmed; else none. */
apr_status_t mdl_staff_email_recipients(mdl_db_t *db, apr_int64_t shop_id,
                                        apr_array_header_t **recipients, apr_pool_t *p);

/** Queues one to each recipient as long as the budgets allow; of the last one that they do, data
    has the member "last". */
apr_status_t mdl_staff_email_queue(mdl_db_t *db, apr_int64_t shop_id, const char *template,
                                   mdl_json_t *data, apr_pool_t *p);

/** Queues the email that asks an address to be confirmed; *queued is whether the budgets did allow
    it. */
apr_status_t mdl_staff_email_ask(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                 int *queued, apr_pool_t *p);

/** Reads the email of a shop's job; APR_ENOENT when there is none. */
apr_status_t mdl_staff_email_find(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                                  mdl_staff_email_t *email, apr_pool_t *p);

/** Deletes the email of a job that has ended. */
apr_status_t mdl_staff_email_delete(mdl_db_t *db, const char *job_id, apr_pool_t *p);

#endif
