/*
 * Names of an archive's entries: safe on every system, and no two the same.
 */
#ifndef MDL_BASE_ZIP_NAME_H
#define MDL_BASE_ZIP_NAME_H

#include <apr_pools.h>

#define MDL_ZIP_NAME_MAX 255 /* bytes; what file systems accept */

/** The names of one archive's entries, while they are chosen. */
typedef struct mdl_zip_names_t mdl_zip_names_t;

/** Begins the names of an archive of about so many entries. */
mdl_zip_names_t *mdl_zip_names_begin(int expected, apr_pool_t *p);

/**
 * The name of the next entry, for a file of that name, which may be any text.  It is one that every
 * system can write in the folder that it unpacks into: UTF-8 of at most MDL_ZIP_NAME_MAX bytes, no
 * separator, no control or text-direction character, none of "<>:|?*, not the name of a Windows
 * device, no dot or space at its end, and different from all earlier ones even where letter case is
 * ignored: the second "name.ext" becomes "name (2).ext".  It lives in the pool of
 * mdl_zip_names_begin.
 */
const char *mdl_zip_names_add(mdl_zip_names_t *names, const char *filename);

/** Frees what was needed to find duplicates; the names stay valid. */
void mdl_zip_names_end(mdl_zip_names_t *names);

#endif
