/*
 * downloadsctl order show|diagnose|resend: orders as the shop sees them in the API and its
 * settings.
 */
#ifndef MDL_CTL_ORDER_H
#define MDL_CTL_ORDER_H

#include "ctl/command.h"

int mdl_ctl_order_show(mdl_ctl_t *ctl);

/** Prints why a customer can't download; MDL_EXIT_PROBLEM if there is a reason. */
int mdl_ctl_order_diagnose(mdl_ctl_t *ctl);

/** Queues the order's email again, like the API and within its limits. */
int mdl_ctl_order_resend(mdl_ctl_t *ctl);

#endif
