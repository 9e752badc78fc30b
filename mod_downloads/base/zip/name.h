/*
 * Names of an archive's entries: safe on every system, and none twice.
 */
#ifndef MDL_BASE_ZIP_NAME_H
#define MDL_BASE_ZIP_NAME_H

#include <apr_pools.h>

/** The names of one archive. */
typedef struct mdl_zip_names_t mdl_zip_names_t;

/** For about so many. */
mdl_zip_names_t *mdl_zip_names_begin(int expected, apr_pool_t *p);

/** The name for a file, as mdl_zip_add says; it lives in the pool of mdl_zip_names_begin. */
const char *mdl_zip_names_add(mdl_zip_names_t *names, const char *filename);

/** Frees what was needed to find doubles; the names stay. */
void mdl_zip_names_end(mdl_zip_names_t *names);

#endif
