/*
 * Argument and result of an effect on an entity of a shop, such as an asset or a pack.  An effect
 * with more arguments has its own struct, which begins with this one.
 */
#ifndef MDL_CORE_ENTITY_REF_H
#define MDL_CORE_ENTITY_REF_H

#include "core/problem.h"

#define MDL_NAME_MAX 255 /* characters of a name or a title */

typedef struct {
    apr_int64_t shop_id;
    apr_int64_t id;                     /* 0: to be created */
    const apr_array_header_t *versions; /* which the caller knows (core/version.h); NULL: any */
    mdl_problem_t *problem;
    void *entity; /* out: the entity after the effect; NULL: deleted */
} mdl_entity_ref_t;

#endif
