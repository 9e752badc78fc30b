/*
 * An order and its assignments as the contract shows them (section 6).
 */
#ifndef MDL_API_ORDER_VIEW_H
#define MDL_API_ORDER_VIEW_H

#include "api/request.h"
#include "core/order/order.h"

/** Adds an order's members; its events and downloads too, when they were read. */
void mdl_order_write(mdl_json_t *to, mdl_request_t *request, const mdl_order_t *order);

/** Adds an assignment's members. */
void mdl_assignment_write(mdl_json_t *to, const mdl_assignment_t *assignment);

/** Refuses with 404 order_not_found. */
apr_status_t mdl_order_not_found(mdl_request_t *request);

#endif
