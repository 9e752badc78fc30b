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
    int until_close;          /* the body ends with the connection: a cut one looks whole */
    const char *etag;         /* strong entity tag with its quotes, or NULL */
    const char *content_type; /* or NULL */
    const char *filename;     /* as mdl_filename_of_disposition, or NULL */
} mdl_http_head_t;

/** What has arrived of a file in earlier fetches. */
typedef struct {
    apr_int64_t offset; /* bytes */
    apr_int64_t total;  /* what the source said that the whole file has; -1: nothing */
    const char *etag;   /* strong; NULL: nothing can be resumed */
} mdl_http_part_t;

/** How a fetch has ended; valid until done() returns. */
typedef struct {
    mdl_http_result_t result;
    const char *host;   /* whose answer, or whose lack of one, decided it; a name, never NULL */
    const char *reason; /* a sentence for the shop: the host's name and what it did, without URL,
                           address or credential */
    const char *detail; /* the same for the operator's log, with an address that is not allowed */
    int status;         /* of the response that decided it; 0: there was none */
    int retry_after_s;  /* -1: not given */
} mdl_http_end_t;

typedef struct mdl_http_fetch_t mdl_http_fetch_t;

typedef struct {
    /** Once, before the first byte (also of an empty body).  Anything but APR_SUCCESS stops. */
    apr_status_t (*head)(void *baton, const mdl_http_head_t *head);
    /** Bytes in order, at most 16 KiB a call.  Anything but APR_SUCCESS stops. */
    apr_status_t (*body)(void *baton, const char *data, apr_size_t length);
    /** Once, last. */
    void (*done)(void *baton, const mdl_http_end_t *end);
} mdl_http_callbacks_t;

/**
 * Begins a fetch.  Of a part (NULL: none) with bytes and a strong etag it asks for the rest (Range,
 * If-Range); head() then says whether the source agreed or starts at 0 again (RFC 9110 sections
 * 13.1.5, 14).  When the source sends a wrong part, or of a file of another size, or 416, one more
 * request asks for the whole file; head() then sees that one alone.  A failure to begin is reported
 * through done() from the next mdl_http_client_run.  All arguments are copied; the fetch is invalid
 * once done() has returned.
 */
mdl_http_fetch_t *mdl_http_fetch(mdl_http_client_t *client, const char *url,
                                 const mdl_http_part_t *part, const mdl_http_callbacks_t *callbacks,
                                 void *baton);

/** Ends a fetch without done().  Not to be called from a callback. */
void mdl_http_fetch_cancel(mdl_http_fetch_t *fetch);

#endif
