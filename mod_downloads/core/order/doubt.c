#include "core/order/doubt.h"

#include "base/mail/likely_typo.h"
#include "core/order/visit.h"

apr_status_t mdl_order_find_meant(mdl_db_t *db, const mdl_order_t *order, const char **meant,
                                  apr_pool_t *p)
{
    int awaited = order->state.access == MDL_ORDER_ACTIVE || order->state.access == MDL_ORDER_HELD;
    mdl_rows_t *rows;
    apr_status_t rv;

    *meant = order->address != NULL && awaited ? mdl_likely_typo(order->address, p) : NULL;
    if (*meant == NULL) {
        return APR_SUCCESS;
    }
    rv = mdl_order_visit_ask_list(db, order->id, 1, &rows, p);
    if (rv == APR_SUCCESS && mdl_order_visit_read_list(rows, p)->nelts > 0) {
        *meant = NULL;
    }
    return rv;
}
