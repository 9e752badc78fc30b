/*
 * The page of an order: whether the customer can download, what was bought, and what happened.
 */
#ifndef MDL_SETTINGS_ORDER_VIEW_H
#define MDL_SETTINGS_ORDER_VIEW_H

#include "settings/visit.h"

/** Sends the page of the order that the visit's argument names, with visit->problem and what was
    typed into a form of it. */
int mdl_order_view_send(mdl_visit_t *visit, int status);

#endif
