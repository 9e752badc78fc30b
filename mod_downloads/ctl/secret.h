/*
 * downloadsctl secret status|retire
 */
#ifndef MDL_CTL_SECRET_H
#define MDL_CTL_SECRET_H

#include "ctl/command.h"

int mdl_ctl_secret_status(mdl_ctl_t *ctl);
int mdl_ctl_secret_retire(mdl_ctl_t *ctl);

#endif
