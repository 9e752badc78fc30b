#include "worker/handler.h"

static const mdl_job_handler_t *const handlers[] = {
    [MDL_JOB_IMPORT] = &mdl_handler_import,
    [MDL_JOB_VERIFY] = &mdl_handler_verify,
    [MDL_JOB_EMAIL] = &mdl_handler_mail,
    [MDL_JOB_LOOKUP] = &mdl_handler_lookup,
    [MDL_JOB_WEBHOOK] = &mdl_handler_webhook,
    [MDL_JOB_STAFF_EMAIL] = &mdl_handler_staff_email,
    [MDL_JOB_LOGO] = &mdl_handler_logo,
    [MDL_JOB_MOVE] = &mdl_handler_move,
    [MDL_JOB_FIND_EMAIL] = &mdl_handler_find_email,
    [MDL_JOB_LATE] = &mdl_handler_late,
    [MDL_JOB_TELL] = &mdl_handler_tell,
    [MDL_JOB_NEWS] = &mdl_handler_news,
    [MDL_JOB_MERGE] = &mdl_handler_merge,
    [MDL_JOB_UNKNOWN] = NULL,
};

const mdl_job_handler_t *mdl_handler_of(const mdl_job_t *job)
{
    return handlers[job->type];
}
