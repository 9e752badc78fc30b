/*
 * A customer, as orders know it.
 */
#ifndef MDL_CORE_ORDER_BUYER_H
#define MDL_CORE_ORDER_BUYER_H

#include <apr_time.h>

typedef struct {
    apr_int64_t id;
    const char *storefront_customer_id; /* NULL: a guest, who is the customer of one order */
    const char *email;                  /* NULL when not known, like the next three */
    const char *first_name;
    const char *last_name;
    const char *locale;
    apr_time_t created_at; /* only by mdl_customer_find, like the next */
    apr_time_t updated_at;
} mdl_customer_t;

/* The members of a customer that may be unknown, as bits. */
#define MDL_CUSTOMER_EMAIL      1U
#define MDL_CUSTOMER_FIRST_NAME 2U
#define MDL_CUSTOMER_LAST_NAME  4U
#define MDL_CUSTOMER_LOCALE     8U

#endif
