/*
 * The customer behind an address that we gave out: his order, and whom an answer is for.
 */
#ifndef MDL_DELIVERY_CUSTOMER_H
#define MDL_DELIVERY_CUSTOMER_H

#include <httpd.h>

#include "core/order/order.h"
#include "core/service.h"
#include "delivery/view.h"

/** Reads the order of a page id by mdl_order_find or mdl_order_head: APR_ENOENT when there is
    none. */
apr_status_t mdl_customer_order(request_rec *r, const mdl_service_t *service, const char *page_id,
                                mdl_effect_fn *effect, mdl_order_t **order);

/** Whether a browser asks before its owner does. */
int mdl_customer_prefetches(request_rec *r);

/** Whom an answer about this order is for. */
mdl_view_customer_t mdl_customer_view(const mdl_service_t *service, const mdl_order_t *order,
                                      apr_pool_t *p);

#endif
