/*
 * downloadsctl feed renew
 */
#ifndef MDL_CTL_FEED_H
#define MDL_CTL_FEED_H

#include "ctl/command.h"

int mdl_ctl_feed_renew(mdl_ctl_t *ctl);

#endif
