/*
 * Entity tags (RFC 9110, section 8.8.3) of what the API answers with: "<id>-<updated_at>.<digest>",
 * updated_at in digits and a digest of the members.  If-None-Match compares all of it; If-Match
 * only what is before the dot, the version, since a change is not refused because of members that
 * show what goes on elsewhere, such as a stock.
 */
#ifndef MDL_API_ETAG_H
#define MDL_API_ETAG_H

#include "api/request.h"

/** Fills a write's request->versions from If-Match.  Refused: 400 invalid_request, also where
    there is no version that it could name. */
apr_status_t mdl_etag_parse(mdl_request_t *request);

/** The ETag of the entity that the response is about, in the request's pool; text is the response
    as JSON.  NULL if there is none. */
const char *mdl_etag_of(const mdl_request_t *request, const char *text);

/** Whether If-None-Match names the ETag that is sent, or what a filter that compresses has made of
   it, so that the response is 304. */
int mdl_etag_known(const mdl_request_t *request);

#endif
