/*
 * How much an order may hold.  A mapping may grow later, and the order with it: it is checked only
 * when something is added.
 */
#ifndef MDL_CORE_ORDER_ORDER_SIZE_H
#define MDL_CORE_ORDER_ORDER_SIZE_H

#include "core/order/order.h"

/** The most items that an order may have, over all its assignments. */
#define MDL_ORDER_ITEMS_MAX 250

/** Refuse an order that would exceed a limit: 422 too_many_files, too_many_links,
    too_many_license_keys. */
apr_status_t mdl_order_too_many_files(mdl_problem_t *problem, apr_pool_t *p);
apr_status_t mdl_order_too_many_links(mdl_problem_t *problem, apr_pool_t *p);
apr_status_t mdl_order_too_many_license_keys(mdl_problem_t *problem, apr_pool_t *p);

/** Refuses an order that exceeds a limit: as above, or 422 too_many_items.  For the order as it is
    just before the commit. */
apr_status_t mdl_order_check_size(const mdl_order_t *order, mdl_problem_t *problem, apr_pool_t *p);

#endif
