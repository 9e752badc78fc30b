/*
 * downloadsctl key create|list|revoke
 */
#ifndef MDL_CTL_KEY_H
#define MDL_CTL_KEY_H

#include "ctl/command.h"

/** The only command that prints a token. */
int mdl_ctl_key_create(mdl_ctl_t *ctl);
int mdl_ctl_key_list(mdl_ctl_t *ctl);
int mdl_ctl_key_revoke(mdl_ctl_t *ctl);

#endif
