/*
 * downloadsctl restore
 */
#ifndef MDL_CTL_RESTORE_H
#define MDL_CTL_RESTORE_H

#include "ctl/command.h"

/** Restores a backup into an empty database and an empty storage folder.  A restoration that was
    killed goes on when the command is given again. */
int mdl_ctl_restore(mdl_ctl_t *ctl);

#endif
