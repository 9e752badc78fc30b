/*
 * downloadsctl audit: lists who changed what, and when.
 */
#ifndef MDL_CTL_AUDIT_H
#define MDL_CTL_AUDIT_H

#include "ctl/command.h"

int mdl_ctl_audit(mdl_ctl_t *ctl);

#endif
