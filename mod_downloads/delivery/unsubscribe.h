/*
 * The page on which a customer ends a shop's emails about new versions.  It needs no cookie: the
 * link was sent to that address alone.
 */
#ifndef MDL_DELIVERY_UNSUBSCRIBE_H
#define MDL_DELIVERY_UNSUBSCRIBE_H

#include <httpd.h>

#include "core/service/service.h"

/** GET and HEAD of a link made by mdl_signed_url_unsubscribe: asks, and changes nothing, since mail
    servers and readers open links by themselves. */
int mdl_unsubscribe_show(request_rec *r, const mdl_service_t *service, const char *token);

/** POST, by the page's button or a mail reader (RFC 8058): unsubscribes; a repetition changes
    nothing. */
int mdl_unsubscribe_press(request_rec *r, const mdl_service_t *service, const char *token);

#endif
