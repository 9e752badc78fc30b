/*
 * The list of a shop's orders, and the field to find one.
 */
#ifndef MDL_SETTINGS_ORDERS_H
#define MDL_SETTINGS_ORDERS_H

#include "base/text/json.h"
#include "settings/visit.h"

/** Adds who the customer is, as a person or as far as known: customer_name, customer_email and
    customer_id. */
void mdl_orders_add_customer(mdl_json_t *to, const char *first_name, const char *last_name,
                             const char *email, const char *id, apr_pool_t *p);

/** Adds an array with what a list shows of orders (mdl_order_line_t *). */
void mdl_orders_add_lines(mdl_json_t *to, const char *name, const apr_array_header_t *lines,
                          apr_pool_t *p);

#endif
