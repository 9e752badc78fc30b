/*
 * Reading the headers of the response that a libcurl handle has just received, strictly, so that a
 * truncated file is noticed.  Private to base/http.
 */
#ifndef MDL_BASE_HTTP_RESPONSE_H
#define MDL_BASE_HTTP_RESPONSE_H

#include <apr.h>
#include <curl/curl.h>

/** The index-th header of that name in the final response, or NULL; valid until the handle is used
    again. */
const char *mdl_http_response_header(CURL *easy, const char *name, size_t index);

/** The length of a body that ends with the connection, so that a truncated body looks complete. */
#define MDL_HTTP_UNTIL_CLOSE (-2)

/**
 * *length gets the body's size, -1 when it is chunked, or MDL_HTTP_UNTIL_CLOSE.  Repeated equal
 * lengths are accepted.  Returns 0 for differing or malformed lengths, and for a transfer coding
 * other than chunked (RFC 9112 section 6.3).
 */
int mdl_http_response_length(CURL *easy, apr_int64_t *length);

/** The seconds of Retry-After, which may be a date (RFC 9110 section 10.2.3); -1 for none.  A date
    is compared with the response's own Date, so clocks need not agree. */
int mdl_http_response_retry_after(CURL *easy);

/** Whether the response has a content coding other than identity. */
int mdl_http_response_is_encoded(CURL *easy);

/** Reads the only Content-Range of a 206 response (RFC 9110 section 14.4): first and last byte, and
    the size of the whole file.  Returns 0 for any other, also one without a size. */
int mdl_http_response_range(CURL *easy, apr_int64_t *first, apr_int64_t *last, apr_int64_t *total);

/**
 * Whether this 206 response is all of the file from offset to its end, with the same etag and,
 * unless known is -1, a total size of known.  length is the body's, from mdl_http_response_length.
 * *total gets the size of the whole file.  A response without a total, or that ends early, is valid
 * (RFC 9110 section 14.4) but not accepted: completeness could not be verified.
 */
int mdl_http_response_is_rest(CURL *easy, apr_int64_t offset, const char *etag, apr_int64_t known,
                              apr_int64_t length, apr_int64_t *total);

/** Whether etag (NULL: none) is a strong entity tag (RFC 9110 section 8.8.3): in quotes, not weak,
   at most 256 bytes of printable ASCII. */
int mdl_http_etag_is_strong(const char *etag);

#endif
