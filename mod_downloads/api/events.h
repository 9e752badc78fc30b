/*
 * GET /events: what has happened in a shop, from the oldest on (contract, section 11).
 */
#ifndef MDL_API_EVENTS_H
#define MDL_API_EVENTS_H

#include "api/request.h"
#include "core/shop/notice.h"

extern const mdl_route_t mdl_route_event_list;

#endif
