/*
 * What an order's delivery email says of its products, as JSON for its templates.
 */
#ifndef MDL_CORE_ORDER_EMAIL_PRODUCTS_H
#define MDL_CORE_ORDER_EMAIL_PRODUCTS_H

#include "core/order/order.h"

#define MDL_EMAIL_FILES_MAX 10 /* lines of files in an email */

/**
 * Adds to data what the open assignments give (docs/templates.md):
 *
 *   products        one for each assignment that has something to show: [{"title","note":{"lines"},
 *                   "has_license_keys","license_keys","pending","has_files","files","more_files",
 *                   "has_links","links","expires"}]; each gets a line of files before one gets more
 *   more_files      files of products that are not shown, or null: {"count"}
 *   expires         the date when all access ends; null if it never ends, or ends at different
 *                   times: then each product has its own
 *   complete        something is given, and no file is being prepared or failed
 *   in_preparation  files not ready yet, or null: {"count", "all": no other files}
 */
void mdl_email_products(mdl_json_t *data, const mdl_order_t *order, apr_time_t now,
                        const mdl_secret_t *secret, const char *public_url, apr_pool_t *p);

#endif
