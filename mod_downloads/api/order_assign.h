/*
 * POST /orders/{id}/assignments.
 */
#ifndef MDL_API_ORDER_ASSIGN_H
#define MDL_API_ORDER_ASSIGN_H

#include "api/request.h"

extern const mdl_route_t mdl_route_order_assign;

#endif
