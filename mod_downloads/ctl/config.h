/*
 * downloadsctl config explain: each directive with its value, where that comes from, and its
 * default.
 */
#ifndef MDL_CTL_CONFIG_H
#define MDL_CTL_CONFIG_H

#include "ctl/command.h"

int mdl_ctl_config_explain(mdl_ctl_t *ctl);

#endif
