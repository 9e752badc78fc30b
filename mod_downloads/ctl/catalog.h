/*
 * downloadsctl asset list|show, mapping list|show: a shop's files, and what its products deliver.
 */
#ifndef MDL_CTL_CATALOG_H
#define MDL_CTL_CATALOG_H

#include "ctl/command.h"

int mdl_ctl_asset_list(mdl_ctl_t *ctl);
int mdl_ctl_asset_show(mdl_ctl_t *ctl);
int mdl_ctl_mapping_list(mdl_ctl_t *ctl);
int mdl_ctl_mapping_show(mdl_ctl_t *ctl);

#endif
