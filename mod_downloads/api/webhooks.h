/*
 * /webhook-endpoints: where a shop's system is told of events, and what was sent there (contract,
 * section 11).
 */
#ifndef MDL_API_WEBHOOKS_H
#define MDL_API_WEBHOOKS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_webhook_list;
extern const mdl_route_t mdl_route_webhook_create;
extern const mdl_route_t mdl_route_webhook;
extern const mdl_route_t mdl_route_webhook_change;
extern const mdl_route_t mdl_route_webhook_delete;
extern const mdl_route_t mdl_route_webhook_rotate;
extern const mdl_route_t mdl_route_webhook_test;
extern const mdl_route_t mdl_route_webhook_deliveries;
extern const mdl_route_t mdl_route_webhook_resend;

#endif
