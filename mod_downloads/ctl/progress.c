#include "ctl/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define BAR   30
#define PAUSE (APR_USEC_PER_SEC / 10)

int mdl_ctl_progress_shown(const mdl_ctl_t *ctl)
{
    return isatty(STDERR_FILENO) && !ctl->quiet && !mdl_printer_is_json(ctl->output);
}

mdl_ctl_progress_t mdl_ctl_progress_begin(const mdl_ctl_t *ctl, const char *what, apr_int64_t total)
{
    return (mdl_ctl_progress_t){.shown = mdl_ctl_progress_shown(ctl), .what = what, .total = total};
}

void mdl_ctl_progress_say(mdl_ctl_progress_t *progress, const char *what)
{
    mdl_ctl_progress_clear(progress);
    if (progress->shown) {
        progress->width = fprintf(stderr, "%s ...", what);
    }
}

void mdl_ctl_progress_tell(mdl_ctl_progress_t *progress, apr_int64_t done)
{
    static const char full[] = "##############################";
    static const char empty[] = "..............................";
    apr_time_t now = mdl_clock_monotonic();
    int part;

    if (!progress->shown || (progress->told_at != 0 && now - progress->told_at < PAUSE)) {
        return;
    }
    progress->told_at = now;
    /* More may have come since they were counted. */
    progress->total = done > progress->total ? done : progress->total;
    part = progress->total > 0 ? (int)(done * BAR / progress->total) : 0;
    progress->width = fprintf(
        stderr, "\r%.*s%.*s %3d %%, %" APR_INT64_T_FMT " of %" APR_INT64_T_FMT " %s", part, full,
        BAR - part, empty, progress->total > 0 ? (int)(done * 100 / progress->total) : 0, done,
        progress->total, progress->what);
}

void mdl_ctl_progress_clear(mdl_ctl_progress_t *progress)
{
    if (progress->width > 0) {
        fprintf(stderr, "\r%*s\r", progress->width, "");
        progress->width = 0;
    }
}
