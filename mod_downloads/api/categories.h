/*
 * The operations of /categories.
 */
#ifndef MDL_API_CATEGORIES_H
#define MDL_API_CATEGORIES_H

#include "api/request.h"

extern const mdl_route_t mdl_route_category_list;
extern const mdl_route_t mdl_route_category_create;
extern const mdl_route_t mdl_route_category;
extern const mdl_route_t mdl_route_category_change;
extern const mdl_route_t mdl_route_category_delete;

#endif
