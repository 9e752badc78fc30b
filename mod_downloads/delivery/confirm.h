/*
 * The page on which a shop's staff confirm an email address.  It needs no sign-in: the link was
 * sent to that address alone.
 */
#ifndef MDL_DELIVERY_CONFIRM_H
#define MDL_DELIVERY_CONFIRM_H

#include <httpd.h>

#include "core/service/service.h"

/** GET and HEAD of a link made by mdl_signed_url_confirm: asks, and changes nothing, since mail
    servers and readers open links by themselves. */
int mdl_confirm_show(request_rec *r, const mdl_service_t *service, const char *token);

/** POST, the page's button: confirms the address; a repetition changes nothing. */
int mdl_confirm_press(request_rec *r, const mdl_service_t *service, const char *token);

/** 405 for any other method, to which the caller adds Allow. */
int mdl_confirm_wrong_method(request_rec *r, const mdl_service_t *service, const char *token);

#endif
