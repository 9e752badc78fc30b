/*
 * downloadsctl maintenance: closes the service to changes (core/closed.h).
 */
#ifndef MDL_CTL_MAINTENANCE_H
#define MDL_CTL_MAINTENANCE_H

#include "ctl/command.h"

int mdl_ctl_maintenance_on(mdl_ctl_t *ctl);
int mdl_ctl_maintenance_off(mdl_ctl_t *ctl);
int mdl_ctl_maintenance_status(mdl_ctl_t *ctl);

#endif
