/*
 * Reading of assignments: GET /orders/{id}/assignments, GET /orders/{id}/assignments/{purchase_id}
 * and GET …/download-urls.
 */
#ifndef MDL_API_ASSIGNMENTS_H
#define MDL_API_ASSIGNMENTS_H

#include "api/request.h"

extern const mdl_route_t mdl_route_assignment_list;
extern const mdl_route_t mdl_route_assignment;
extern const mdl_route_t mdl_route_download_urls;

#endif
