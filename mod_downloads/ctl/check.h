/*
 * downloadsctl check
 */
#ifndef MDL_CTL_CHECK_H
#define MDL_CTL_CHECK_H

#include "ctl/command.h"

/** Runs every check, even after one has failed; returns MDL_EXIT_PROBLEM when anything is wrong. */
int mdl_ctl_check(mdl_ctl_t *ctl);

#endif
