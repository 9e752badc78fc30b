/*
 * A file's name for the customer's browser: separators and the syntax of headers and URLs are
 * replaced or encoded.
 */
#ifndef MDL_BASE_TEXT_FILENAME_H
#define MDL_BASE_TEXT_FILENAME_H

#include <apr_pools.h>

/** The value of Content-Disposition (RFC 6266), with an ASCII fallback and filename* (RFC 8187). */
const char *mdl_filename_disposition(const char *filename, apr_pool_t *p);

/**
 * The filename that a Content-Disposition (RFC 6266; NULL: none) names: that of filename* (RFC
 * 8187, in UTF-8 or ISO-8859-1) before that of filename, which is UTF-8 or else ISO-8859-1.  Of a
 * path it is the last segment (section 4.3).  NULL when there is none that can be a file's name:
 * empty, dots alone, control characters.
 */
const char *mdl_filename_of_disposition(const char *disposition, apr_pool_t *p);

/** "/" and the name as one segment of a URL's path; "" for a name that can't be a segment. */
const char *mdl_filename_segment(const char *filename, apr_pool_t *p);

#endif
