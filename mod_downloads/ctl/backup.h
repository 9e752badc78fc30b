/*
 * downloadsctl backup, and what a backup and a restoration share
 */
#ifndef MDL_CTL_BACKUP_H
#define MDL_CTL_BACKUP_H

#include "core/catalog/storage_verify.h"
#include "ctl/command.h"
#include "ctl/progress.h"

/** A list of faulty files, printed line by line and collected for --json. */
typedef struct {
    mdl_ctl_t *ctl;
    const mdl_storage_t *storage; /* that has the files */
    mdl_ctl_progress_t progress;
    mdl_json_t *faults;
} mdl_ctl_faults_t;

/** Prints a faulty file in place of the progress; faults is a mdl_ctl_faults_t. */
void mdl_ctl_fault_found(void *faults, const mdl_blob_t *blob, mdl_blob_fault_t fault,
                         apr_status_t rv);

/** Ends a long command behind the file in hand at SIGINT or SIGTERM. */
void mdl_ctl_await_stop(void);
int mdl_ctl_stopped(void);

int mdl_ctl_backup(mdl_ctl_t *ctl);

#endif
