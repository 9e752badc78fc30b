/*
 * A request's Range header (RFC 9110 section 14.2), where it asks for nothing that there is, or for
 * all.
 */
#ifndef MDL_DELIVERY_RANGE_H
#define MDL_DELIVERY_RANGE_H

#include <httpd.h>

typedef enum { MDL_RANGE_WHOLE, MDL_RANGE_PART, MDL_RANGE_BEYOND } mdl_range_t;

/**
 * What is asked for of a file of that size, whose validators stand in headers_out: BEYOND where it
 * has to be refused with 416, for the header is well-formed and each of its ranges lies behind the
 * end; WHOLE without a range, by one from its first byte to its last, by several that make it up,
 * by an If-Range that does not match (section 13.1.5), or by a header that httpd may pass over.
 * Which bytes are sent is for httpd's byterange filter to decide.
 */
mdl_range_t mdl_range_read(request_rec *r, apr_int64_t size);

#endif
