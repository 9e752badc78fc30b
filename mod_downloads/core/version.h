/*
 * The version of an entity: its updated_at in milliseconds, which each change moves.  A caller that
 * changes what it has read before names the version that it read, and is refused if somebody else
 * was faster.
 */
#ifndef MDL_CORE_VERSION_H
#define MDL_CORE_VERSION_H

#include <apr_time.h>

#include "core/problem.h"
#include "db/db.h"

/** The version of what was changed last at that time. */
static inline apr_int64_t mdl_version(apr_time_t updated_at)
{
    return updated_at / 1000;
}

/** Refuses an entity whose version its caller does not know: 412 precondition_failed. */
apr_status_t mdl_version_refuse(mdl_problem_t *problem);

/** mdl_version_refuse unless the version is one of versions (apr_int64_t); NULL: any will do. */
apr_status_t mdl_version_check(const apr_array_header_t *versions, apr_time_t updated_at,
                               mdl_problem_t *problem);

/** The two arguments of a statement's {{of_version}}, for MDL_Q. */
#define MDL_VERSION_ARGS(known, p)                                                                 \
    .versioned = (known) != NULL,                                                                  \
    .versions = (known) != NULL ? (known) : apr_array_make(p, 1, sizeof(apr_int64_t))

#endif
