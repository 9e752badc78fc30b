#include "worker/handler.h"

#include <string.h>

static const mdl_job_handler_t *const handlers[] = {&mdl_handler_import, &mdl_handler_verify,
                                                    &mdl_handler_mail, &mdl_handler_lookup};

const mdl_job_handler_t *mdl_handler_of(const mdl_job_t *job)
{
    for (apr_size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        if (strcmp(handlers[i]->type, job->type) == 0) {
            return handlers[i];
        }
    }
    return NULL;
}
