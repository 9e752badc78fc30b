/*
 * What a request's Range header (RFC 9110 section 14.2) asks for: all, a part, or nothing that
 * exists.
 */
#ifndef MDL_DELIVERY_RANGE_H
#define MDL_DELIVERY_RANGE_H

#include <httpd.h>

typedef enum { MDL_RANGE_WHOLE, MDL_RANGE_PART, MDL_RANGE_BEYOND } mdl_range_kind_t;

typedef struct {
    mdl_range_kind_t kind;
    apr_int64_t first;  /* where the first range begins, which need not be the lowest */
    apr_int64_t length; /* how many bytes it asks for */
    int is_several;     /* whether there are more */
} mdl_range_t;

/**
 * What r asks for of a file of that size, whose validators are in headers_out.  BEYOND is to be
 * refused with 416: the header is well-formed and each of its ranges begins after the end.  WHOLE
 * is a request without a range, with ranges that together make up the file, with an If-Range that
 * does not match (section 13.1.5), with more ranges than most, or with a header that httpd ignores;
 * its range is all of the file.  httpd's byterange filter, which decides what is sent, may send
 * that in place of several.
 */
mdl_range_t mdl_range_read(request_rec *r, apr_int64_t size, int most);

#endif
