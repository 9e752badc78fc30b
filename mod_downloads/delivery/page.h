/*
 * An order's page and its button.
 */
#ifndef MDL_DELIVERY_PAGE_H
#define MDL_DELIVERY_PAGE_H

#include <httpd.h>

#include "core/service/service.h"

/** GET and HEAD: shows the order and changes nothing. */
int mdl_page_show(request_rec *r, const mdl_service_t *service, const char *token);

/**
 * POST of a form with file={assignment id}-{asset id}: redirects to a fresh link of that file, or
 * with zip={assignment id} to one of an archive of all its files; or shows the page again with the
 * status of the refusal.  A download is charged when that link is used, not here.
 */
int mdl_page_press(request_rec *r, const mdl_service_t *service, const char *token);

/** 405 for any other method, to which the caller adds Allow. */
int mdl_page_wrong_method(request_rec *r, const mdl_service_t *service, const char *token);

#endif
