/*
 * The emails of a shop, as its staff look through them.
 */
#ifndef MDL_CORE_ORDER_EMAIL_LOG_H
#define MDL_CORE_ORDER_EMAIL_LOG_H

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
 * Effect: reads the shop's emails that fit, the newest first.  A text that is the number of an
 * order finds the emails of the order; any other text those to addresses that begin with it, in any
 * case, among 1,000.
 */
typedef struct {
    apr_int64_t shop_id;
    const char *fate; /* a name of mdl_email_status_names; NULL: any */
    const char *text; /* or NULL */
    apr_int64_t before;
    int limit;
    apr_array_header_t *found; /* out: mdl_email_line_t * */
    apr_int64_t next;          /* out: before for the next page; 0: there is none */
} mdl_email_log_t;
apr_status_t mdl_email_log(mdl_db_t *db, apr_pool_t *p, mdl_email_log_t *log);

#endif
