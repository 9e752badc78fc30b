/*
 * How far long work has come, in a line on standard error that is replaced as it goes on.  Printed
 * only on a terminal, and neither with --quiet nor with --json.
 */
#ifndef MDL_CTL_PROGRESS_H
#define MDL_CTL_PROGRESS_H

#include "ctl/command.h"

typedef struct {
    int shown;        /* whether it is printed at all */
    int width;        /* of what is on the line, 0: nothing */
    const char *what; /* that is counted */
    apr_int64_t total;
    apr_time_t told_at; /* by mdl_clock_monotonic, 0: not yet */
} mdl_ctl_progress_t;

/** Whether progress of this command would be printed: else its total need not be counted. */
int mdl_ctl_progress_shown(const mdl_ctl_t *ctl);

/** what is a plural such as "files". */
mdl_ctl_progress_t mdl_ctl_progress_begin(const mdl_ctl_t *ctl, const char *what,
                                          apr_int64_t total);

/** Tells that something is being done whose end is not known. */
void mdl_ctl_progress_say(mdl_ctl_progress_t *progress, const char *what);

/** Tells how many are done, at most ten times a second. */
void mdl_ctl_progress_tell(mdl_ctl_progress_t *progress, apr_int64_t done);

/** Clears the line, before anything else is printed, and at the end. */
void mdl_ctl_progress_clear(mdl_ctl_progress_t *progress);

#endif
