/*
 * What outgoing requests may do, and how they can end.
 */
#ifndef MDL_BASE_HTTP_POLICY_H
#define MDL_BASE_HTTP_POLICY_H

#include <apr.h>
#include <apr_network_io.h>
#include <apr_pools.h>
#include <apr_tables.h>

/** The limits of outgoing requests.  Made once from the configuration, then shared read-only. */
typedef struct {
    apr_array_header_t *hosts;    /* const char *: lower-case "host" or "*.suffix" */
    apr_array_header_t *networks; /* apr_ipsubnet_t *: private networks that are allowed */
    apr_array_header_t *ports;    /* int: allowed besides the scheme's default */
    int any_port;                 /* development only */
    int allow_http;
    int max_redirects;
    int connect_timeout_s;
    int stall_timeout_s;  /* a transfer under 1 KiB/s for this long is aborted */
    int total_timeout_s;  /* of a fetch with its redirects; 0: none */
    apr_int64_t max_size; /* bytes of the body */
    const char *ca_file;  /* certificates in PEM to trust; NULL: the system's */
} mdl_http_policy_t;

/** Initializes a policy with empty lists in p and all else 0: no host, private network, plain http
    or other port is allowed. */
void mdl_http_policy_init(mdl_http_policy_t *policy, apr_pool_t *p);

typedef enum {
    MDL_HTTP_OK,
    MDL_HTTP_HOST_NOT_ALLOWED,  /* host, port or scheme of the URL or of a redirect */
    MDL_HTTP_URL_INVALID,       /* malformed, or with userinfo, an IP address, bytes >= 0x80 … */
    MDL_HTTP_ADDRESS_FORBIDDEN, /* the name resolves to a forbidden address */
    MDL_HTTP_NOT_FOUND,         /* 404, 410 */
    MDL_HTTP_REFUSED,           /* 4xx but 404, 408, 410, 425, 429; or an unacceptable response:
                                   encoded body, conflicting lengths, wrong 206 */
    MDL_HTTP_REDIRECTS,         /* more than the policy allows */
    MDL_HTTP_NAME_UNKNOWN,      /* the host's name has no address */
    MDL_HTTP_CERTIFICATE,       /* the host's certificate is not trusted */
    MDL_HTTP_UNAVAILABLE,       /* no connection, no TLS, cut body, 5xx, 408, 425, 429 */
    MDL_HTTP_TIMEOUT,
    MDL_HTTP_TOO_LARGE,
    MDL_HTTP_STOPPED /* a callback of the caller failed */
} mdl_http_result_t;

#endif
