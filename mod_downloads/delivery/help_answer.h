/*
 * The page on which a member of a shop answers a customer who asks for help.  It needs no sign-in:
 * the link was sent to that member alone.
 */
#ifndef MDL_DELIVERY_HELP_ANSWER_H
#define MDL_DELIVERY_HELP_ANSWER_H

#include <httpd.h>

#include "core/service/service.h"

/** GET and HEAD of a link made by mdl_signed_url_help: shows what is wrong and the answers, and
    changes nothing, since mail servers and readers open links by themselves. */
int mdl_help_answer_show(request_rec *r, const mdl_service_t *service, const char *token);

/** POST, the page's buttons: answers the request, once, if the member may act on orders by now. */
int mdl_help_answer_press(request_rec *r, const mdl_service_t *service, const char *token);

/** 405 for any other method, to which the caller adds Allow. */
int mdl_help_answer_wrong_method(request_rec *r, const mdl_service_t *service, const char *token);

#endif
