/*
 * The redirect from an order to one of its links, which sends the link's site no Referer.
 */
#ifndef MDL_DELIVERY_LINK_H
#define MDL_DELIVERY_LINK_H

#include <httpd.h>

#include "core/service/service.h"

/** GET and HEAD of a link made by mdl_signed_url_link: redirects to the link's page while the order
    includes it, else shows why not, as a file's link does.  Each is logged with order and link. */
int mdl_link_serve(request_rec *r, const mdl_service_t *service, const char *token);

/** 405 for any other method, to which the caller adds Allow. */
int mdl_link_wrong_method(request_rec *r, const mdl_service_t *service, const char *token);

#endif
