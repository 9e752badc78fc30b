/*
 * A file's name on its way to the customer's disk: what could be a path or a header's syntax is
 * taken out or encoded.
 */
#ifndef MDL_BASE_TEXT_FILENAME_H
#define MDL_BASE_TEXT_FILENAME_H

#include <apr_pools.h>

/** Content-Disposition (RFC 6266) with an ASCII fallback and filename* (RFC 8187). */
const char *mdl_filename_disposition(const char *filename, apr_pool_t *p);

/** "/" and the name as one segment of a URL's path, or "" where it can't be one. */
const char *mdl_filename_segment(const char *filename, apr_pool_t *p);

#endif
