#include "worker/task.h"

#include <string.h>

static const mdl_job_kind_t *const kinds[] = {&mdl_kind_import, &mdl_kind_verify, &mdl_kind_mail,
                                              &mdl_kind_lookup};

const mdl_job_kind_t *mdl_kind_of(const mdl_job_t *job)
{
    for (apr_size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i]->type, job->type) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}
