/*
 * downloadsctl migrate
 */
#ifndef MDL_CTL_MIGRATE_H
#define MDL_CTL_MIGRATE_H

#include "ctl/command.h"

int mdl_ctl_migrate(mdl_ctl_t *ctl);

#endif
