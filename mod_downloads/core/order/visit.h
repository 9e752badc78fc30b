/*
 * The first visit of an order's page on each day from each network, 20 networks a day at most.
 */
#ifndef MDL_CORE_ORDER_VISIT_H
#define MDL_CORE_ORDER_VISIT_H

#include <apr_time.h>

#include "db/db.h"

typedef struct {
    apr_int64_t order_id;
    const char *network; /* mdl_address_network */
    apr_time_t visited_at;
} mdl_order_visit_t;

/** The day of a time, since 1970-01-01, in UTC. */
apr_int64_t mdl_order_visit_day(apr_time_t when);

/** Effect: records a visit, unless its day has one of the network, or of 20 others. */
apr_status_t mdl_order_visit_add(mdl_db_t *db, apr_pool_t *p, mdl_order_visit_t *visit);

/** Asks for the newest visits of an order. */
apr_status_t mdl_order_visit_ask_list(mdl_db_t *db, apr_int64_t order_id, int limit,
                                      mdl_rows_t **rows, apr_pool_t *p);

/** Reads them: mdl_order_visit_t *, newest day first. */
apr_array_header_t *mdl_order_visit_read_list(mdl_rows_t *rows, apr_pool_t *p);

#endif
