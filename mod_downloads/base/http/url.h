/*
 * URLs, parsed once by libcurl's own parser and then passed on in parsed form, so that libcurl
 * connects to the URL that was checked.
 */
#ifndef MDL_BASE_HTTP_URL_H
#define MDL_BASE_HTTP_URL_H

#include <apr_pools.h>

#include "base/http/policy.h"

#define MDL_HTTP_HOST_MAX 253 /* bytes of a host's name */

/** Whether host is a valid DNS name: labels of lower-case letters, digits, "-" and "_"; IP
    addresses are not. */
int mdl_http_host_valid(const char *host);

/** A parsed URL: libcurl's CURLU. */
typedef struct Curl_URL mdl_http_url_t;

/**
 * Checks url against policy without a DNS look-up.  A host that is not ASCII is converted to its
 * xn-- form; all else must be ASCII.  *host gets the lower-case host in ASCII and *filename the
 * last path segment, percent-decoded; *filename is NULL when there is no segment, it is not UTF-8,
 * or it can't be a file's name (a control character, a slash, "..").  Either pointer may be NULL;
 * both results are NULL unless OK is returned.  Returns OK, HOST_NOT_ALLOWED, URL_INVALID, or
 * UNAVAILABLE when there is no memory.
 */
mdl_http_result_t mdl_http_url_check(const mdl_http_policy_t *policy, const char *url,
                                     const char **host, const char **filename, apr_pool_t *p);

/** The host of an absolute URL as mdl_http_url_check gives it, whatever the policy; NULL: none. */
const char *mdl_http_url_host(const char *text, apr_pool_t *p);

/** A copy of policy, in p, that allows only url's own host and no redirect.  For a malformed URL it
    allows none, so mdl_http_url_check refuses it. */
mdl_http_policy_t *mdl_http_policy_for(const mdl_http_policy_t *policy, const char *url,
                                       apr_pool_t *p);

/** Whether text is a URL fit for a link: absolute, https, only RFC 3986's characters, with a host
    and without user or password. */
int mdl_http_url_is_https(const char *text);

/**
 * Parses text and checks it against policy.  Private to base/http.  base is the URL that redirected
 * to text, which may then be relative; NULL if text must be absolute.  *url is set only with OK,
 * and the caller cleans it up by curl_url_cleanup; *host gets the lower-case host, in p, also of a
 * forbidden URL; NULL if it is an IP address or malformed and so can't be shown.  Returns as
 * mdl_http_url_check.
 */
mdl_http_result_t mdl_http_url_parse(const mdl_http_policy_t *policy, mdl_http_url_t *base,
                                     const char *text, mdl_http_url_t **url, const char **host,
                                     apr_pool_t *p);

#endif
