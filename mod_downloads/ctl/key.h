/*
 * downloadsctl key create|list|revoke
 */
#ifndef MDL_CTL_KEY_H
#define MDL_CTL_KEY_H

#include "core/shop/key.h"
#include "ctl/command.h"

/** Prints a new key and its token; only what creates a key does. */
void mdl_ctl_key_print(mdl_ctl_t *ctl, const mdl_key_create_t *created);

int mdl_ctl_key_create(mdl_ctl_t *ctl);
int mdl_ctl_key_list(mdl_ctl_t *ctl);
int mdl_ctl_key_revoke(mdl_ctl_t *ctl);

#endif
