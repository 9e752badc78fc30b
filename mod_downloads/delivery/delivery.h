/*
 * What a customer opens, under DownloadsPublicURL (contract, section 8):
 *
 *   GET, HEAD  /o/{token}          the order's page: page.h
 *   POST       /o/{token}          its button
 *   GET, HEAD  /f/{token}[/name]   a file: file.h; the name is for the client alone
 *   GET, HEAD  /z/{token}[/name]   an archive of all files of an assignment, likewise
 *   GET, HEAD  /l/{token}          redirects to a link: link.h
 *   GET, HEAD  /find/{shop}        asks for an address; shop is its domain: find.h
 *   POST       /find/{shop}        has the links of its orders sent there
 */
#ifndef MDL_DELIVERY_DELIVERY_H
#define MDL_DELIVERY_DELIVERY_H

#include <httpd.h>

#include "core/service/service.h"

#define MDL_DELIVERY_HANDLER "downloads-delivery"

/** Registers this room's hooks and filters. */
void mdl_delivery_register(void);

/** Reads the templates; for each httpd child, before its threads. */
void mdl_delivery_child_init(apr_pool_t *p, const mdl_service_t *service);

/** Handles a request for MDL_DELIVERY_HANDLER.  Failures are shown as pages, too. */
int mdl_delivery_handle(request_rec *r, const mdl_service_t *service);

/** The name of an operation by its number (request_notes.h): "GET /o/{}".  NULL after the last. */
const char *mdl_delivery_operation(int number, apr_pool_t *p);

#endif
