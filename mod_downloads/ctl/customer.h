/*
 * downloadsctl customer list|show
 */
#ifndef MDL_CTL_CUSTOMER_H
#define MDL_CTL_CUSTOMER_H

#include "ctl/command.h"

int mdl_ctl_customer_list(mdl_ctl_t *ctl);
int mdl_ctl_customer_show(mdl_ctl_t *ctl);

#endif
