/*
 * downloadsctl storage verify|hold|release, and what check says of the files in it
 */
#ifndef MDL_CTL_STORAGE_H
#define MDL_CTL_STORAGE_H

#include "ctl/command.h"

/** Looks at every file that the database knows; MDL_EXIT_PROBLEM when one is faulty. */
int mdl_ctl_storage_verify(mdl_ctl_t *ctl);

/** Keeps the service from removing files, and prints the hold's id. */
int mdl_ctl_storage_hold(mdl_ctl_t *ctl);
int mdl_ctl_storage_release(mdl_ctl_t *ctl);

/** A check of ctl/check.c: looks at some of the files.  Warns of an old hold. */
int mdl_ctl_check_files(mdl_ctl_t *ctl, const char **message);

#endif
