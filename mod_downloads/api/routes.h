/*
 * The routes of each resource, which api/router.c searches.  Each array ends with a route without a
 * method.
 */
#ifndef MDL_API_ROUTES_H
#define MDL_API_ROUTES_H

#include "api/request.h"

extern const mdl_route_t mdl_asset_routes[];
extern const mdl_route_t mdl_assignment_routes[];
extern const mdl_route_t mdl_audit_routes[];
extern const mdl_route_t mdl_category_routes[];
extern const mdl_route_t mdl_customer_routes[];
extern const mdl_route_t mdl_email_routes[];
extern const mdl_route_t mdl_event_routes[];
extern const mdl_route_t mdl_evidence_routes[];
extern const mdl_route_t mdl_health_routes[];
extern const mdl_route_t mdl_help_routes[];
extern const mdl_route_t mdl_import_routes[];
extern const mdl_route_t mdl_job_routes[];
extern const mdl_route_t mdl_license_key_routes[];
extern const mdl_route_t mdl_link_routes[];
extern const mdl_route_t mdl_mapping_routes[];
extern const mdl_route_t mdl_move_routes[];
extern const mdl_route_t mdl_openapi_routes[];
extern const mdl_route_t mdl_order_routes[];
extern const mdl_route_t mdl_order_action_routes[];
extern const mdl_route_t mdl_order_assign_routes[];
extern const mdl_route_t mdl_order_history_routes[];
extern const mdl_route_t mdl_pack_routes[];
extern const mdl_route_t mdl_search_routes[];
extern const mdl_route_t mdl_shop_routes[];
extern const mdl_route_t mdl_statistics_routes[];
extern const mdl_route_t mdl_upload_routes[];
extern const mdl_route_t mdl_webhook_routes[];

#endif
