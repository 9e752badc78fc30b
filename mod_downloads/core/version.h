/*
 * The version of an entity: its updated_at in milliseconds, which each change moves.  A caller
 * names the version that it has read, and its change is refused if somebody else was faster.
 */
#ifndef MDL_CORE_VERSION_H
#define MDL_CORE_VERSION_H

#include <apr_time.h>

#include "core/problem.h"
#include "db/db.h"

/** The version of an entity that was last changed at this time. */
static inline apr_int64_t mdl_version(apr_time_t updated_at)
{
    return updated_at / 1000;
}

/** Refuses a change by a caller that does not know the version: 412 precondition_failed. */
apr_status_t mdl_version_refuse(mdl_problem_t *problem);

/** mdl_version_refuse unless the version is one of versions (apr_int64_t); NULL: any. */
apr_status_t mdl_version_check(const apr_array_header_t *versions, apr_time_t updated_at,
                               mdl_problem_t *problem);

/** The arguments of a statement's {{of_version}}, for MDL_Q. */
#define MDL_VERSION_ARGS(known, p)                                                                 \
    .versioned = (known) != NULL,                                                                  \
    .versions = (known) != NULL ? (known) : apr_array_make(p, 1, sizeof(apr_int64_t))

#endif
