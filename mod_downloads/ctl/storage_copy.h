/*
 * downloadsctl storage status|copy|clean
 */
#ifndef MDL_CTL_STORAGE_COPY_H
#define MDL_CTL_STORAGE_COPY_H

#include "ctl/command.h"

int mdl_ctl_storage_status(mdl_ctl_t *ctl);

/** Copies files into objects or back; MDL_EXIT_PROBLEM if some are left.  SIGINT or SIGTERM ends it
    behind the files in hand; a second one ends the process. */
int mdl_ctl_storage_copy(mdl_ctl_t *ctl);

/** Removes copies that nobody points to. */
int mdl_ctl_storage_clean(mdl_ctl_t *ctl);

#endif
