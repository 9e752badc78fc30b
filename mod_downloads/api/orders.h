/*
 * Reading of orders: GET /orders, GET /orders/{id} and GET /orders/{id}/diagnosis.
 */
#ifndef MDL_API_ORDERS_H
#define MDL_API_ORDERS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_order_list;
extern const mdl_route_t mdl_route_order;
extern const mdl_route_t mdl_route_order_diagnosis;

#endif
