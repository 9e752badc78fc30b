/*
 * downloadsctl shop add|list|approve|suspend|block|unblock
 */
#ifndef MDL_CTL_SHOP_H
#define MDL_CTL_SHOP_H

#include "ctl/command.h"

int mdl_ctl_shop_add(mdl_ctl_t *ctl);
int mdl_ctl_shop_list(mdl_ctl_t *ctl);
int mdl_ctl_shop_approve(mdl_ctl_t *ctl);
int mdl_ctl_shop_suspend(mdl_ctl_t *ctl);
int mdl_ctl_shop_block(mdl_ctl_t *ctl);
int mdl_ctl_shop_unblock(mdl_ctl_t *ctl);
int mdl_ctl_shop_set(mdl_ctl_t *ctl);

#endif
