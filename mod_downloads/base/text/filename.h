/*
 * A file's name for the customer's browser: separators and the syntax of headers and URLs are
 * replaced or encoded.
 */
#ifndef MDL_BASE_TEXT_FILENAME_H
#define MDL_BASE_TEXT_FILENAME_H

#include <apr_pools.h>

/** The value of Content-Disposition (RFC 6266), with an ASCII fallback and filename* (RFC 8187). */
const char *mdl_filename_disposition(const char *filename, apr_pool_t *p);

/** "/" and the name as one segment of a URL's path; "" for a name that can't be a segment. */
const char *mdl_filename_segment(const char *filename, apr_pool_t *p);

#endif
