/*
 * Names for an archive's entries: safe on every system, and unique.
 */
#ifndef MDL_BASE_ZIP_NAME_H
#define MDL_BASE_ZIP_NAME_H

#include <apr_pools.h>

#define MDL_ZIP_NAME_MAX 255 /* bytes; the limit of file systems */

/** The names of one archive's entries, while they are chosen. */
typedef struct mdl_zip_names_t mdl_zip_names_t;

/** Begins an archive's names; expected is about how many. */
mdl_zip_names_t *mdl_zip_names_begin(int expected, apr_pool_t *p);

/**
 * The name of the next entry, for a file name that may be any text.  Every system can unpack it
 * into the target folder: UTF-8 of at most MDL_ZIP_NAME_MAX bytes, no separator, no control or
 * text-direction character, none of "<>:|?*, not the name of a Windows device, no dot or space at
 * its end.  It differs from all earlier names even if letter case is ignored: the second "name.ext"
 * becomes "name (2).ext".  It lives in the pool of mdl_zip_names_begin.
 */
const char *mdl_zip_names_add(mdl_zip_names_t *names, const char *filename);

/** Frees the table that finds duplicates; the names stay valid. */
void mdl_zip_names_end(mdl_zip_names_t *names);

#endif
