/*
 * How many of an item an order has: so many license keys of each tag, and so many times the
 * downloads that its mapping allows.
 */
#ifndef MDL_CORE_ORDER_QUANTITY_H
#define MDL_CORE_ORDER_QUANTITY_H

#include "db/db.h"

typedef struct {
    apr_int64_t order_id;
    apr_int64_t assignment_id; /* not revoked */
    int before;
    int quantity;       /* another, 1 or more */
    const char *key_id; /* the API key that asks, as in an entry */
    const char *user;
    const char *reason;
} mdl_quantity_t;

/** Sets it in the transaction that has locked the order: takes license keys back or hands others
    out, and adds the entry "quantity_changed". */
apr_status_t mdl_quantity_set(mdl_db_t *db, const mdl_quantity_t *change, apr_pool_t *p);

#endif
