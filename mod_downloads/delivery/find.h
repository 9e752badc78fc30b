/*
 * The page on which customers who have lost their email ask for the links of all their orders of a
 * shop, which is named by its domain.
 */
#ifndef MDL_DELIVERY_FIND_H
#define MDL_DELIVERY_FIND_H

#include <httpd.h>

#include "core/service/service.h"

/** GET and HEAD: asks for an address. */
int mdl_find_show(request_rec *r, const mdl_service_t *service, const char *domain);

/** POST of a form with email={address}: the same 200 for every address, known or not; 400 for what
    is no address, 429 after ten requests of a network within an hour, 503 while too many wait. */
int mdl_find_press(request_rec *r, const mdl_service_t *service, const char *domain);

/** 405 for any other method, to which the caller adds Allow. */
int mdl_find_wrong_method(request_rec *r, const mdl_service_t *service, const char *domain);

#endif
