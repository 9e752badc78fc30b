/*
 * A shop's logo, for its page and its emails: everybody may fetch it, and keep it for ever.
 */
#ifndef MDL_DELIVERY_LOGO_H
#define MDL_DELIVERY_LOGO_H

#include <httpd.h>

#include "core/service/service.h"

/** GET and HEAD of a name such as "<sha256>.png". */
int mdl_logo_serve(request_rec *r, const mdl_service_t *service, const char *name);

/** 405 for any other method, to which the caller adds Allow. */
int mdl_logo_wrong_method(request_rec *r, const mdl_service_t *service, const char *name);

#endif
