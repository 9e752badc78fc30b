/*
 * downloadsctl storage verify|hold|release, and the check of the files
 */
#ifndef MDL_CTL_STORAGE_H
#define MDL_CTL_STORAGE_H

#include "ctl/command.h"

/**
 * Opens the storage if it belongs to the database, which with join adopts a new bucket, and
 * prepares libcurl.  Returns an exit code; *why gets a sentence unless that is MDL_EXIT_DONE.
 */
int mdl_ctl_storage_open(mdl_ctl_t *ctl, int join, mdl_storage_t **storage, const char **why);

/** Prints that the storage could not be opened; returns the exit code. */
int mdl_ctl_storage_fail(mdl_ctl_t *ctl, int failed, const char *why);

/** Verifies every file in the database; MDL_EXIT_PROBLEM if any is faulty. */
int mdl_ctl_storage_verify(mdl_ctl_t *ctl);

/** Stops the service from removing files, and prints the hold's id. */
int mdl_ctl_storage_hold(mdl_ctl_t *ctl);
int mdl_ctl_storage_release(mdl_ctl_t *ctl);

/** A check for ctl/check.c: verifies a sample of the files, and warns of an old hold. */
int mdl_ctl_check_files(mdl_ctl_t *ctl, const char **message);

#endif
