/*
 * downloadsctl job list|show|retry
 */
#ifndef MDL_CTL_JOB_H
#define MDL_CTL_JOB_H

#include "ctl/command.h"

int mdl_ctl_job_list(mdl_ctl_t *ctl);
int mdl_ctl_job_show(mdl_ctl_t *ctl);
int mdl_ctl_job_retry(mdl_ctl_t *ctl);

/** Retries every failed job, of one type or shop if given. */
int mdl_ctl_job_retry_failed(mdl_ctl_t *ctl);

#endif
