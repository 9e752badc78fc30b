/*
 * GET /orders/{id}, and POST and GET /orders/{id}/assignments.
 */
#ifndef MDL_API_ORDERS_H
#define MDL_API_ORDERS_H

#include "api/call.h"

extern const mdl_route_t mdl_route_order;
extern const mdl_route_t mdl_route_order_assign;
extern const mdl_route_t mdl_route_order_items;

#endif
