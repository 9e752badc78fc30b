/*
 * Argument and result of an effect on one entity of a shop, such as an asset or a pack.  An effect
 * that takes more has a struct of its own, which begins with this one.
 */
#ifndef MDL_CORE_ENTITY_REF_H
#define MDL_CORE_ENTITY_REF_H

#include "core/problem.h"

#define MDL_NAME_MAX 255 /* characters of a name or a title */

typedef struct {
    apr_int64_t shop_id;
    apr_int64_t id;                     /* 0 to create one */
    const apr_array_header_t *versions; /* that the caller knows (core/version.h); NULL: any */
    mdl_problem_t *problem;
    void *entity; /* out: as it is after the effect; NULL when it was deleted */
} mdl_entity_ref_t;

#endif
