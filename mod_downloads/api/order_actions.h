/*
 * What can be done to an order: POST /orders/{id}/revoke, /restore, /grant-downloads, /resend,
 * /approve and /reject, PATCH /orders/{id}/assignments/{purchase_id}.
 */
#ifndef MDL_API_ORDER_ACTIONS_H
#define MDL_API_ORDER_ACTIONS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_order_revoke;
extern const mdl_route_t mdl_route_order_restore;
extern const mdl_route_t mdl_route_order_grant;
extern const mdl_route_t mdl_route_order_resend;
extern const mdl_route_t mdl_route_order_rotate_link;
extern const mdl_route_t mdl_route_order_approve;
extern const mdl_route_t mdl_route_order_reject;
extern const mdl_route_t mdl_route_assignment_change;

#endif
