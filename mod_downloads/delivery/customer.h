/*
 * The customer behind a signed URL: the order, and the details that a page shows of it.
 */
#ifndef MDL_DELIVERY_CUSTOMER_H
#define MDL_DELIVERY_CUSTOMER_H

#include <httpd.h>

#include "core/order/order.h"
#include "core/service/service.h"
#include "delivery/view.h"

/** Reads the order of a page id; effect is mdl_order_find or mdl_order_head.  network is that of a
    visit of the page, or NULL.  APR_ENOENT when there is none, APR_EACCES when its shop is
    blocked. */
apr_status_t mdl_customer_order(request_rec *r, const mdl_service_t *service, const char *page_id,
                                const char *network, mdl_effect_fn *effect, mdl_order_t **order);

/** Charges a request to an order's page; APR_EAGAIN, with Retry-After, when there are too many. */
apr_status_t mdl_customer_charge(request_rec *r, const mdl_service_t *service, const char *page_id);

/** Sets Retry-After. */
void mdl_customer_wait(request_rec *r, apr_interval_time_t wait);

/** Logs a forged link. */
void mdl_customer_forged(request_rec *r, const mdl_service_t *service);

/** Whether the request is a browser's prefetch. */
int mdl_customer_prefetches(request_rec *r);

/** Whether the browser is one inside of an app, which may not save files. */
int mdl_customer_is_in_app(request_rec *r);

/** What a page shows of the order's customer and shop. */
mdl_view_customer_t mdl_customer_view(const mdl_service_t *service, const mdl_order_t *order,
                                      apr_pool_t *p);

#endif
