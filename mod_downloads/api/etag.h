/*
 * Entity tags of the API (RFC 9110, section 8.8.3): "<id>-<updated_at>.<digest>", with updated_at
 * in digits and a digest of the members.  If-None-Match compares all of it.  If-Match compares only
 * the version, which stands before the dot: members that change with something else, such as a
 * stock, must not make a write fail.
 */
#ifndef MDL_API_ETAG_H
#define MDL_API_ETAG_H

#include "api/request.h"

/** Fills a write's request->versions from If-Match.  Refuses a malformed header, and any header on
    a path without versions, with 400 invalid_request. */
apr_status_t mdl_etag_parse(mdl_request_t *request);

/** The ETag of the response's entity, in the request's pool; NULL if it has none.  text is the
    response as JSON. */
const char *mdl_etag_of(const mdl_request_t *request, const char *text);

/** Whether If-None-Match names the response's ETag, also with the suffix of a compressing filter.
    The response is then 304. */
int mdl_etag_known(const mdl_request_t *request);

#endif
