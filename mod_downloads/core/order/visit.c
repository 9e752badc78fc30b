#include "core/order/visit.h"

apr_int64_t mdl_order_visit_day(apr_time_t when)
{
    return apr_time_sec(when) / 86400;
}

/* The lock lets the count of the day's networks see what others add at the same moment. */
apr_status_t mdl_order_visit_add(mdl_db_t *db, apr_pool_t *p, mdl_order_visit_t *visit)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(ORDER_LOCK_BY_ID, visit->order_id));

    if (rv != APR_SUCCESS || row == NULL) {
        return rv;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(ORDER_VISIT_INSERT, .order_id = visit->order_id,
                             .day = mdl_order_visit_day(visit->visited_at),
                             .network = visit->network, .visited_at = visit->visited_at));
}

apr_status_t mdl_order_visit_ask_list(mdl_db_t *db, apr_int64_t order_id, int limit,
                                      mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(db, rows, p, MDL_Q(ORDER_VISITS, .order_id = order_id, .limit = limit));
}

apr_array_header_t *mdl_order_visit_read_list(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *visits = apr_array_make(p, 8, sizeof(mdl_order_visit_t *));

    while (mdl_rows_next(rows)) {
        mdl_order_visit_t *visit = apr_pcalloc(p, sizeof *visit);

        MDL_READ(rows, order_visits, visit, network, visited_at);
        APR_ARRAY_PUSH(visits, mdl_order_visit_t *) = visit;
    }
    return visits;
}
