/*
 * The URL of a fetch: one parse by libcurl's parser, checked, and from then on handed around in
 * parsed form, so that what was checked is what libcurl connects to.  http_url.c holds
 * mdl_http_url_check of base/http/client.h as well.  For base/http_*.c alone.
 */
#ifndef MDL_BASE_HTTP_URL_H
#define MDL_BASE_HTTP_URL_H

#include <curl/curl.h>

#include "base/http/client.h"

/**
 * Parses text and checks it against policy.  base is the URL that sent a redirect to text, which
 * may then be relative; NULL when text must be absolute.  *url is set with MDL_HTTP_OK only and is
 * the caller's to clean up; *host is its lower-case host, in p.  Returns OK, HOST_NOT_ALLOWED,
 * URL_INVALID, or UNAVAILABLE when there is no memory.
 */
mdl_http_result_t mdl_http_url_parse(const mdl_http_policy_t *policy, CURLU *base, const char *text,
                                     CURLU **url, const char **host, apr_pool_t *p);

#endif
