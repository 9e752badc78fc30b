/*
 * Paths of URLs, and the forms that routes have of them: "/orders/{}/revoke".
 */
#ifndef MDL_BASE_HTTP_PATH_H
#define MDL_BASE_HTTP_PATH_H

#include <apr_pools.h>

#define MDL_PATH_PARAMETERS 2 /* the most that a form has */

/**
 * The number of variable segments if the path has this form, in which "{}" is one segment that is
 * not empty: parameters, of MDL_PATH_PARAMETERS, gets them in p, and NULL behind them.  -1 when it
 * has another.
 */
int mdl_path_match(const char *form, const char *path, const char **parameters, apr_pool_t *p);

#endif
