/*
 * URLs, parsed once by libcurl's own parser and from then on handed around in parsed form, so that
 * what was checked is what libcurl connects to.
 */
#ifndef MDL_BASE_HTTP_URL_H
#define MDL_BASE_HTTP_URL_H

#include <apr_pools.h>

#include "base/http/policy.h"

#define MDL_HTTP_HOST_MAX 253 /* bytes of a host's name */

/** Whether a host has a name that DNS can have: labels of lower-case letters, digits, "-" and "_",
    and no address. */
int mdl_http_host_valid(const char *host);

/** A parsed URL: libcurl's CURLU. */
typedef struct Curl_URL mdl_http_url_t;

/**
 * Checks url against policy without any look-up.  A host that is not ASCII counts as its xn-- form;
 * all else must be ASCII.  *host gets the lower-case host in ASCII and *filename the
 * last path segment, percent-decoded; *filename is NULL when there is no segment, it is not UTF-8,
 * or it can't be a file's name (a control character, a slash, "..").  Either pointer may be NULL;
 * both results are NULL unless OK is returned.  Returns OK, HOST_NOT_ALLOWED, URL_INVALID, or
 * UNAVAILABLE when there is no memory.
 */
mdl_http_result_t mdl_http_url_check(const mdl_http_policy_t *policy, const char *url,
                                     const char **host, const char **filename, apr_pool_t *p);

/** The host of an absolute URL as mdl_http_url_check gives it, whatever the policy; NULL if there
   is none. */
const char *mdl_http_url_host(const char *text, apr_pool_t *p);

/** A copy, in p, of a policy that allows url's own host, and no redirect.  What is no URL has none,
    and mdl_http_url_check refuses it. */
mdl_http_policy_t *mdl_http_policy_for(const mdl_http_policy_t *policy, const char *url,
                                       apr_pool_t *p);

/** Whether text is a URL for people to follow: absolute, https, of RFC 3986's characters, with a
    host and without user or password. */
int mdl_http_url_is_https(const char *text);

/**
 * Parses text and checks it against policy, for base/http alone.  base is the URL that redirects to
 * text, which may then be relative; NULL when text must be absolute.  *url is set only with OK, and
 * the caller cleans it up by curl_url_cleanup; *host is its lower-case host, in p, also of a URL
 * that is not allowed; NULL when that is no name that can be shown: an IP address, or what is not
 * well-formed.  Returns as mdl_http_url_check.
 */
mdl_http_result_t mdl_http_url_parse(const mdl_http_policy_t *policy, mdl_http_url_t *base,
                                     const char *text, mdl_http_url_t **url, const char **host,
                                     apr_pool_t *p);

#endif
