/*
 * The quantity of an assignment multiplies its license keys of each tag and its download limit.
 */
#ifndef MDL_CORE_ORDER_QUANTITY_H
#define MDL_CORE_ORDER_QUANTITY_H

#include "db/db.h"

typedef struct {
    apr_int64_t order_id;
    apr_int64_t assignment_id; /* must not be revoked */
    int before;
    int quantity;       /* the new one, 1 or more */
    const char *key_id; /* this and the next two as in mdl_timeline_entry_t */
    const char *user;
    const char *reason;
} mdl_quantity_t;

/** Sets the quantity in the transaction that has locked the order: takes license keys back or hands
    more out, and adds the timeline entry "quantity_changed". */
apr_status_t mdl_quantity_set(mdl_db_t *db, const mdl_quantity_t *change, apr_pool_t *p);

#endif
