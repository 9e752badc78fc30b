/*
 * Reading the headers of the response that a libcurl handle has just received, as strictly as a
 * file that must arrive complete requires.  For base/http alone.
 */
#ifndef MDL_BASE_HTTP_RESPONSE_H
#define MDL_BASE_HTTP_RESPONSE_H

#include <apr.h>
#include <curl/curl.h>

/** The index-th header of that name in the final response, or NULL; valid until the handle is used
    again. */
const char *mdl_http_response_header(CURL *easy, const char *name, size_t index);

/** The length of a body that ends with the connection, so that a cut one looks whole. */
#define MDL_HTTP_UNTIL_CLOSE (-2)

/**
 * *length gets the body's size, -1 when it is chunked, or MDL_HTTP_UNTIL_CLOSE.  Several lengths
 * are accepted when they are the same.  Returns 0 when they are not, for what is no length, and for
 * a transfer coding other than chunked (RFC 9112 section 6.3).
 */
int mdl_http_response_length(CURL *easy, apr_int64_t *length);

/** The seconds of Retry-After, which may be a date (RFC 9110 section 10.2.3); -1 for none.  A date
    counts from that of the response, so that no clocks need to agree. */
int mdl_http_response_retry_after(CURL *easy);

/** Whether there is a content coding other than identity. */
int mdl_http_response_is_encoded(CURL *easy);

/**
 * Whether this 206 is the rest from offset up to the end of the file that has etag and, unless
 * known is -1, that size; length is the body's, from mdl_http_response_length.  *total gets the
 * size of the whole file.  A response without a total or with less than the rest is valid (RFC 9110
 * section 14.4) but not accepted: it could not be told whether the file is complete.
 */
int mdl_http_response_is_rest(CURL *easy, apr_int64_t offset, const char *etag, apr_int64_t known,
                              apr_int64_t length, apr_int64_t *total);

/** Whether etag (NULL: none) is a strong entity tag (RFC 9110 section 8.8.3): in quotes, not weak,
   at most 256 bytes of printable ASCII. */
int mdl_http_etag_is_strong(const char *etag);

#endif
