/*
 * The settings: what a shop's staff open in a browser (docs/settings.md).  The user is
 * authenticated by httpd or by sign_in.h; pages and forms are for members whose role allows them.
 */
#ifndef MDL_SETTINGS_ROUTER_H
#define MDL_SETTINGS_ROUTER_H

#include <httpd.h>

#include "core/service/service.h"

#define MDL_SETTINGS_HANDLER "downloads-settings"

/** For each httpd child, before its threads. */
void mdl_settings_router_child_init(apr_pool_t *p, const mdl_service_t *service);

/** The handler; returns an httpd status. */
int mdl_settings_router_handle(request_rec *r, const mdl_service_t *service);

/** The name of an operation by its number (request_notes.h): "GET {}/orders".  NULL after the
    last. */
const char *mdl_settings_router_operation(int number, apr_pool_t *p);

#endif
