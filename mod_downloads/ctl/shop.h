/*
 * downloadsctl shop add|list|approve|suspend|block|unblock
 */
#ifndef MDL_CTL_SHOP_H
#define MDL_CTL_SHOP_H

#include "ctl/command.h"

extern const char *const mdl_ctl_switch_names[]; /* "off" and "on" */

int mdl_ctl_shop_add(mdl_ctl_t *ctl);
int mdl_ctl_shop_list(mdl_ctl_t *ctl);
int mdl_ctl_shop_approve(mdl_ctl_t *ctl);
int mdl_ctl_shop_suspend(mdl_ctl_t *ctl);
int mdl_ctl_shop_block(mdl_ctl_t *ctl);
int mdl_ctl_shop_unblock(mdl_ctl_t *ctl);
int mdl_ctl_shop_set(mdl_ctl_t *ctl);

/** Reads the storefront's token from a file, or from standard input for "-", before root is given
    up, because only root may be able to read the file.  Returns why it can't, or NULL; no message
    quotes the token. */
const char *mdl_ctl_shop_read_token(mdl_ctl_t *ctl, const char *path);

#endif
