/*
 * Fetching remote files with libcurl's multi interface, guarded against server-side request
 * forgery: the host is checked on the parsed URL, the address at connect time on every connection,
 * redirects are followed by our own loop under the same checks.
 */
#ifndef MDL_BASE_HTTP_CLIENT_H
#define MDL_BASE_HTTP_CLIENT_H

#include <apr_errno.h>
#include <apr_network_io.h>
#include <apr_pools.h>
#include <apr_tables.h>

/** Where a fetch may go.  Made once from the configuration, then shared and only read. */
typedef struct {
    const apr_array_header_t *hosts;    /* const char *: lower-case "host" or "*.suffix" */
    const apr_array_header_t *networks; /* apr_ipsubnet_t *: allowed though private */
    const apr_array_header_t *ports;    /* int: allowed beside the scheme's own */
    int any_port;                       /* development only */
    int allow_http;
    int max_redirects;
    int connect_timeout_s;
    int stall_timeout_s; /* under 1 KiB/s for so long gives up */
    int total_timeout_s;
    apr_int64_t max_size; /* bytes of the body */
    const char *ca_file;  /* certificates in PEM to trust; NULL: the system's */
} mdl_http_policy_t;

typedef enum {
    MDL_HTTP_OK,
    MDL_HTTP_HOST_NOT_ALLOWED, /* URL or redirect: host, port or scheme */
    MDL_HTTP_URL_INVALID,      /* not a URL that we take: userinfo, IP literal, bytes >= 0x80 … */
    MDL_HTTP_ADDRESS_FORBIDDEN, /* the name leads to an address that is refused */
    MDL_HTTP_NOT_FOUND,         /* 404, 410 */
    MDL_HTTP_REFUSED,           /* other 4xx but 408, 425, 429; too many redirects; an answer we
                                   don't take: encoded body, no length, wrong 206 */
    MDL_HTTP_UNAVAILABLE,       /* no connection, TLS failure, cut body, 5xx, 408, 425, 429 */
    MDL_HTTP_TIMEOUT,
    MDL_HTTP_TOO_LARGE,
    MDL_HTTP_STOPPED /* by the caller: a callback said no, or mdl_http_cancel */
} mdl_http_result_t;

/**
 * Parses url once by libcurl's own parser and checks it against policy without any look-up.
 * *host gets the lower-case host and *filename the last path segment, percent-decoded, or NULL when
 * there is none, it is not UTF-8 or no name of a file (a control character, a slash, "..").  Either
 * may be NULL; both are set to NULL unless OK is returned.  Returns OK, HOST_NOT_ALLOWED or
 * URL_INVALID.
 */
mdl_http_result_t mdl_http_url_check(const mdl_http_policy_t *policy, const char *url,
                                     const char **host, const char **filename, apr_pool_t *p);

/** Whether text is a URL for people to follow: absolute, https, of RFC 3986's characters, with a
   host and without user or password. */
int mdl_http_url_is_https(const char *text);

/**
 * Whether policy lets a connection go to this address: a public one (base/http/address.h) or one
 * within policy->networks.  NAT64, 6to4 and v4-mapped addresses pass only when the IPv4 address
 * inside passes as well.
 */
int mdl_http_address_allowed(const mdl_http_policy_t *policy, const apr_sockaddr_t *address);

/** What the source said of the body that follows. */
typedef struct {
    apr_int64_t offset;       /* where the first byte belongs: 0, or what was asked for */
    apr_int64_t total;        /* size of the whole file, -1 when the source doesn't say */
    const char *etag;         /* strong entity tag with its quotes, or NULL */
    const char *content_type; /* or NULL */
} mdl_http_head_t;

typedef struct mdl_http_fetch_t mdl_http_fetch_t;

typedef struct {
    /** Once, before the first byte (also of an empty body).  Anything but APR_SUCCESS stops. */
    apr_status_t (*head)(void *baton, const mdl_http_head_t *head);
    /** Bytes in order, at most 16 KiB a call.  Anything but APR_SUCCESS stops. */
    apr_status_t (*body)(void *baton, const char *data, apr_size_t length);
    /** Once, last.  detail is a short sentence for the log, without an address; never NULL. */
    void (*done)(void *baton, mdl_http_result_t result, const char *detail);
} mdl_http_callbacks_t;

/** One multi handle; belongs to one thread. */
typedef struct mdl_http_client_t mdl_http_client_t;

/** Call once in the process before any thread is started; the clean-up is registered with p. */
apr_status_t mdl_http_global_init(apr_pool_t *p);

/**
 * policy is kept, not copied.  p is that thread's own; when it goes, fetches that run end without
 * done().  The process ignores SIGPIPE.
 */
apr_status_t mdl_http_client_create(mdl_http_client_t **client, const mdl_http_policy_t *policy,
                                    apr_pool_t *p);

/**
 * Begins a fetch.  With offset > 0 and a strong etag it asks for the rest (Range, If-Range); head()
 * then says whether the source agreed or starts at 0 again (RFC 9110 sections 13.1.5, 14).
 * When it sends a wrong part or 416, one more request asks for all; head() sees the second alone.
 * A failure to begin is reported through done() from the next mdl_http_client_run.  What is passed
 * is copied; the handle is void once done() has returned.
 */
mdl_http_fetch_t *mdl_http_fetch(mdl_http_client_t *client, const char *url, apr_int64_t offset,
                                 const char *etag, const mdl_http_callbacks_t *callbacks,
                                 void *baton);

/** Ends a fetch without done().  Not to be called from a callback. */
void mdl_http_cancel(mdl_http_fetch_t *fetch);

/** Waits for work up to timeout_ms, or until mdl_http_client_wake, and does it. */
void mdl_http_client_run(mdl_http_client_t *client, int timeout_ms);

/** Ends the wait of mdl_http_client_run from any thread. */
void mdl_http_client_wake(mdl_http_client_t *client);

#endif
