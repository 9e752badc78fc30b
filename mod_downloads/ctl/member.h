/*
 * downloadsctl member: people who may open a shop's settings.
 */
#ifndef MDL_CTL_MEMBER_H
#define MDL_CTL_MEMBER_H

#include "ctl/command.h"

/* Each is a command, see ctl/command.h. */
int mdl_ctl_member_add(mdl_ctl_t *ctl);
int mdl_ctl_member_ask(mdl_ctl_t *ctl);
int mdl_ctl_member_list(mdl_ctl_t *ctl);
int mdl_ctl_member_remove(mdl_ctl_t *ctl);
int mdl_ctl_member_sign_out(mdl_ctl_t *ctl);

#endif
