/*
 * Orders whose address was probably mistyped, for the shop's overview (core/order/attention.h).
 */
#ifndef MDL_CORE_ORDER_TYPO_H
#define MDL_CORE_ORDER_TYPO_H

#include "db/db.h"

/** Notes that an order's address, or NULL, was probably mistyped, if it was (mdl_likely_typo).  It
    counts as long as the order has this address. */
apr_status_t mdl_order_note_typo(mdl_db_t *db, apr_int64_t order_id, const char *address,
                                 apr_pool_t *p);

#endif
