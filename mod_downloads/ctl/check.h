/*
 * downloadsctl check
 */
#ifndef MDL_CTL_CHECK_H
#define MDL_CTL_CHECK_H

#include "ctl/command.h"

/** Looks at everything, whatever was found before; MDL_EXIT_PROBLEM when anything is wrong. */
int mdl_ctl_check(mdl_ctl_t *ctl);

#endif
