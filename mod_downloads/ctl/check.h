/*
 * downloadsctl check
 */
#ifndef MDL_CTL_CHECK_H
#define MDL_CTL_CHECK_H

#include "ctl/command.h"

/** Runs every check, even after one fails; returns MDL_EXIT_PROBLEM if any fails. */
int mdl_ctl_check(mdl_ctl_t *ctl);

#endif
