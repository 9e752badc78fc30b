/*
 * Fetching a remote file.  Redirects are followed here, not by libcurl, and checked like the URL.
 */
#ifndef MDL_BASE_HTTP_FETCH_H
#define MDL_BASE_HTTP_FETCH_H

#include <apr_errno.h>

#include "base/http/client.h"

/** What the source's headers say about the body that follows. */
typedef struct {
    apr_int64_t offset;       /* of the body's first byte in the file: 0, or the requested offset */
    apr_int64_t total;        /* size of the whole file, -1 when the source doesn't say */
    int until_close;          /* the body ends with the connection, so truncation goes unnoticed */
    const char *etag;         /* strong entity tag with its quotes, or NULL */
    const char *content_type; /* or NULL */
    const char *filename;     /* as mdl_filename_of_disposition, or NULL */
} mdl_http_head_t;

/** The part of a file that earlier fetches received. */
typedef struct {
    apr_int64_t offset; /* bytes */
    apr_int64_t total;  /* size of the whole file, -1 when the source didn't say */
    const char *etag;   /* strong; NULL: nothing can be resumed */
} mdl_http_part_t;

/** How a fetch ended; valid until done() returns. */
typedef struct {
    mdl_http_result_t result;
    const char *host;   /* name of the host that answered or failed to; never NULL */
    const char *reason; /* a sentence for the shop, without URL, address or credential */
    const char *detail; /* for the operator's log: the reason with the forbidden address */
    int status;         /* of the deciding response; 0: there was none */
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
 * Begins a fetch.  If part (NULL: none) has bytes and a strong etag, it requests the rest (Range,
 * If-Range); head() then tells whether the source resumes or starts at 0 again (RFC 9110 sections
 * 13.1.5, 14).  If the source answers with a wrong range, another total size or 416, the whole file
 * is requested once, and head() sees only that response.  A failure to begin is reported through
 * done() from the next mdl_http_client_run.  All arguments are copied; the fetch is invalid once
 * done() has returned.
 */
mdl_http_fetch_t *mdl_http_fetch(mdl_http_client_t *client, const char *url,
                                 const mdl_http_part_t *part, const mdl_http_callbacks_t *callbacks,
                                 void *baton);

/** Ends a fetch without done().  Not to be called from a callback. */
void mdl_http_fetch_cancel(mdl_http_fetch_t *fetch);

#endif
