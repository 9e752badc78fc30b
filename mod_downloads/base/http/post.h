/*
 * A POST of JSON with a bounded response, under the guards of base/http/client.h.  No redirect is
 * followed, because the request carries a credential or signature for the URL's host only.
 */
#ifndef MDL_BASE_HTTP_POST_H
#define MDL_BASE_HTTP_POST_H

#include "base/http/client.h"

typedef struct {
    const char *url;
    const char *body;
    const apr_array_header_t *headers; /* const char *: lines, "Name: value" */
} mdl_http_post_request_t;

/** The result of a POST; valid until done() returns. */
typedef struct {
    mdl_http_result_t result; /* OK for any response but a redirect */
    const char *reason;       /* for the shop: a sentence without URL, address or credential */
    const char *detail;       /* for the operator's log: the reason with the forbidden address */
    int status;               /* 0: there was no response */
    int retry_after_s;        /* -1: not given */
    const char *body;         /* what was received of the response, with a closing NUL */
    apr_size_t length;
} mdl_http_response_t;

typedef void mdl_http_post_done_fn(void *baton, const mdl_http_response_t *response);

typedef struct mdl_http_post_t mdl_http_post_t;

/**
 * Begins a POST under policy, not the client's: its hosts, timeouts, and max_size for the response
 * body.  policy must live until the end, all other arguments are copied.  A redirect is REFUSED, a
 * complete response of any other status is OK.  A failure to begin is reported through done() from
 * the next mdl_http_client_run; the post is invalid once done() has returned.
 */
mdl_http_post_t *mdl_http_post(mdl_http_client_t *client, const mdl_http_policy_t *policy,
                               const mdl_http_post_request_t *request, mdl_http_post_done_fn *done,
                               void *baton);

/** Ends a POST without done().  Not to be called from done(). */
void mdl_http_post_cancel(mdl_http_post_t *post);

#endif
