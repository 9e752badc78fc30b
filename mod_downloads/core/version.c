#include "core/version.h"

#include "core/ids.h"

apr_status_t mdl_version_refuse(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 412, "precondition_failed",
                           "This has been changed since the version that If-Match names: read it "
                           "again, and decide anew.");
}

apr_status_t mdl_version_check(const apr_array_header_t *versions, apr_time_t updated_at,
                               mdl_problem_t *problem)
{
    return versions == NULL || mdl_ids_has(versions, mdl_version(updated_at))
               ? APR_SUCCESS
               : mdl_version_refuse(problem);
}
