/*
 * A request's Range header (RFC 9110 section 14.2), where it asks for nothing that there is, or for
 * all.
 */
#ifndef MDL_DELIVERY_RANGE_H
#define MDL_DELIVERY_RANGE_H

#include <httpd.h>

/**
 * Whether a file of that size and entity tag has to be refused with 416: the header is well-formed,
 * each of its ranges lies behind the end, and no If-Range makes it void.  Everything else is for
 * httpd's byterange filter to decide.
 */
int mdl_range_is_unsatisfiable(request_rec *r, apr_int64_t size, const char *etag);

/**
 * Whether all of such a file is asked for: without a range, by one from its first byte to its last,
 * by several that make it up, or by a header that httpd may pass over.
 */
int mdl_range_is_whole(request_rec *r, apr_int64_t size, const char *etag);

#endif
