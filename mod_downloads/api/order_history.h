/*
 * What has happened to an order, newest first: GET /orders/{id}/events, /downloads and /emails.
 */
#ifndef MDL_API_ORDER_HISTORY_H
#define MDL_API_ORDER_HISTORY_H

#include "api/request.h"

extern const mdl_route_t mdl_route_order_events;
extern const mdl_route_t mdl_route_order_downloads;
extern const mdl_route_t mdl_route_order_emails;

#endif
