/*
 * A POST of JSON with a bounded answer, under the guards of base/http/client.h.  No redirect is
 * followed: the request carries a credential, which is for the URL's own host alone.
 */
#ifndef MDL_BASE_HTTP_POST_H
#define MDL_BASE_HTTP_POST_H

#include "base/http/client.h"

typedef struct {
    const char *url;
    const char *credential; /* a header line, "Name: value" */
    const char *body;
} mdl_http_request_t;

/** What came of it; lives until done() returns. */
typedef struct {
    mdl_http_result_t result; /* OK also for an answer with a status of an error */
    const char *detail; /* a short sentence for the operator's log, without URL or credential */
    int status;         /* 0: there was no answer */
    int retry_after_s;  /* -1: not said, or not in seconds */
    const char *body;   /* with a closing NUL */
    apr_size_t length;
} mdl_http_answer_t;

typedef void mdl_http_post_done_fn(void *baton, const mdl_http_answer_t *answer);

typedef struct mdl_http_post_t mdl_http_post_t;

/**
 * Begins a POST.  policy stands instead of the client's for this one: its hosts, times and
 * max_size, which bounds the answer's body; it is kept until the end, what else is passed is
 * copied.  An answer in any status but a redirect (REFUSED) is OK when it came whole.  A failure to
 * begin is reported through done() from the next mdl_http_client_run; the handle is void once
 * done() has returned.
 */
mdl_http_post_t *mdl_http_post(mdl_http_client_t *client, const mdl_http_policy_t *policy,
                               const mdl_http_request_t *request, mdl_http_post_done_fn *done,
                               void *baton);

/** Ends it without done().  Not to be called from done(). */
void mdl_http_post_cancel(mdl_http_post_t *post);

#endif
