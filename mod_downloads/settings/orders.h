/*
 * The list of a shop's orders, and its search.
 */
#ifndef MDL_SETTINGS_ORDERS_H
#define MDL_SETTINGS_ORDERS_H

#include "base/text/json.h"
#include "settings/visit.h"

/** Adds what is known of a customer: customer_name, customer_email and customer_id. */
void mdl_orders_add_customer(mdl_json_t *to, const char *first_name, const char *last_name,
                             const char *email, const char *id, apr_pool_t *p);

/** Adds an array of orders (mdl_order_line_t *) as lists show them. */
void mdl_orders_add_lines(mdl_json_t *to, const char *name, const apr_array_header_t *lines,
                          apr_pool_t *p);

#endif
