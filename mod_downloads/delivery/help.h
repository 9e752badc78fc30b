/*
 * The button by which a customer asks the shop for help.
 */
#ifndef MDL_DELIVERY_HELP_H
#define MDL_DELIVERY_HELP_H

#include <httpd.h>

#include "core/order/help.h"
#include "core/service/service.h"

/** Finds what is wrong with an order, and asks its shop. */
apr_status_t mdl_help_press(request_rec *r, const mdl_service_t *service, const mdl_order_t *order,
                            mdl_help_outcome_t *outcome);

#endif
