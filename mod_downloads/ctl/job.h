/*
 * downloadsctl job list|show|retry
 */
#ifndef MDL_CTL_JOB_H
#define MDL_CTL_JOB_H

#include "ctl/command.h"

int mdl_ctl_job_list(mdl_ctl_t *ctl);
int mdl_ctl_job_show(mdl_ctl_t *ctl);
int mdl_ctl_job_retry(mdl_ctl_t *ctl);

/** Does that for each failed job, of one type or shop where asked to. */
int mdl_ctl_job_retry_failed(mdl_ctl_t *ctl);

#endif
