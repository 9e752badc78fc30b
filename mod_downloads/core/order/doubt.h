/*
 * Whether an order's address was probably mistyped, for the order's page.
 */
#ifndef MDL_CORE_ORDER_DOUBT_H
#define MDL_CORE_ORDER_DOUBT_H

#include "core/order/order.h"
#include "db/db.h"

/** Sets *meant to the address that was probably meant by an order's; NULL when nothing suggests
    another, when the order gives nothing, or when somebody has opened its page: they got the
    email. */
apr_status_t mdl_order_find_meant(mdl_db_t *db, const mdl_order_t *order, const char **meant,
                                  apr_pool_t *p);

#endif
