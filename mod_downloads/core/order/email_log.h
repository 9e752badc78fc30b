/*
 * The emails of a shop, as its staff and its integrations look through them.
 */
#ifndef MDL_CORE_ORDER_EMAIL_LOG_H
#define MDL_CORE_ORDER_EMAIL_LOG_H

#include "core/list_page.h"
#include "core/order/email.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    apr_time_t created_at;
    mdl_email_state_t state;
    const char *storefront_order_id;
    const char *order_name; /* or NULL */
    int earlier;            /* whether the order had an email before it */
} mdl_email_line_t;

/**
 * Effect: reads a page of the shop's emails that fit.  Addresses are compared by their beginnings,
 * in any case, among 1,000 that begin so, or among all emails of an order that is given, too.
 */
typedef struct {
    mdl_list_page_t page;            /* of mdl_email_line_t */
    const char *fate;                /* a name of mdl_email_status_names; NULL: any */
    const char *storefront_order_id; /* or NULL */
    const char *address;             /* how it begins; or NULL */
    const char *text;                /* the id of an order, or else an address; or NULL */
} mdl_email_log_t;
apr_status_t mdl_email_log(mdl_db_t *db, apr_pool_t *p, mdl_email_log_t *log);

#endif
