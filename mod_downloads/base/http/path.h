/*
 * Matching URL paths against the patterns of routes: "/orders/{}/revoke".
 */
#ifndef MDL_BASE_HTTP_PATH_H
#define MDL_BASE_HTTP_PATH_H

#include <apr_pools.h>

#define MDL_PATH_PARAMETERS 2 /* the most of one pattern */

/**
 * Matches a path against a pattern, form, in which "{}" stands for one segment that is not empty.
 * Returns the number of such segments; parameters, of MDL_PATH_PARAMETERS elements, gets them, in
 * p, and NULL for the rest.  Returns -1 if the path does not match.
 */
int mdl_path_match(const char *form, const char *path, const char **parameters, apr_pool_t *p);

#endif
