/*
 * File names in headers and URLs: separators and special characters are replaced or encoded.
 */
#ifndef MDL_BASE_TEXT_FILENAME_H
#define MDL_BASE_TEXT_FILENAME_H

#include <apr_pools.h>

/** A Content-Disposition value (RFC 6266) with an ASCII fallback and filename* (RFC 8187), in p. */
const char *mdl_filename_disposition(const char *filename, apr_pool_t *p);

/**
 * The file name in a Content-Disposition value (RFC 6266; NULL: none), in p: filename* (RFC 8187,
 * in UTF-8 or ISO-8859-1) takes precedence over filename, in UTF-8 or else ISO-8859-1.  Of a path
 * only the last segment is used (section 4.3).  NULL if there is no usable name: empty, only dots,
 * control characters.
 */
const char *mdl_filename_of_disposition(const char *disposition, apr_pool_t *p);

/** "/" and the name as one segment of a URL's path, in p; "" if the name can't be a segment. */
const char *mdl_filename_segment(const char *filename, apr_pool_t *p);

#endif
