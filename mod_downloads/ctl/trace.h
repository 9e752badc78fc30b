/*
 * downloadsctl trace: what one request has caused.
 */
#ifndef MDL_CTL_TRACE_H
#define MDL_CTL_TRACE_H

#include "ctl/command.h"

int mdl_ctl_trace(mdl_ctl_t *ctl);

#endif
