/*
 * Fetching a remote file.  Redirects are followed by a loop of our own, under the same checks as
 * the first URL.
 */
#ifndef MDL_BASE_HTTP_FETCH_H
#define MDL_BASE_HTTP_FETCH_H

#include <apr_errno.h>

#include "base/http/client.h"

/** What the source said about the body that follows. */
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
    /** Once, last.  detail is a short sentence for the operator's log, without a URL; never NULL.
        It is valid until done() returns. */
    void (*done)(void *baton, mdl_http_result_t result, const char *detail);
} mdl_http_callbacks_t;

/**
 * Begins a fetch.  With offset > 0 and a strong etag it asks for the rest (Range, If-Range); head()
 * then says whether the source agreed or starts at 0 again (RFC 9110 sections 13.1.5, 14).  When
 * the source sends a wrong part or 416, one more request asks for the whole file; head() then sees
 * that one alone.  A failure to begin is reported through done() from the next
 * mdl_http_client_run.  All arguments are copied; the fetch is invalid once done() has returned.
 */
mdl_http_fetch_t *mdl_http_fetch(mdl_http_client_t *client, const char *url, apr_int64_t offset,
                                 const char *etag, const mdl_http_callbacks_t *callbacks,
                                 void *baton);

/** Ends a fetch without done().  Not to be called from a callback. */
void mdl_http_fetch_cancel(mdl_http_fetch_t *fetch);

#endif
