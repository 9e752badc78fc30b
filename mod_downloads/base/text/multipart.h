/*
 * Bodies of multipart/form-data (RFC 7578), read as they arrive, in pieces of any size and without
 * a copy of what the parts hold.  Strict, as browsers write them: nothing before the first
 * boundary, no space behind a boundary, no folded headers, no transfer encoding, and nothing but a
 * line's end after the last boundary.
 */
#ifndef MDL_BASE_TEXT_MULTIPART_H
#define MDL_BASE_TEXT_MULTIPART_H

#include <apr_errno.h>
#include <apr_pools.h>

#define MDL_MULTIPART_BOUNDARY_MAX 70   /* characters (RFC 2046, section 5.1.1) */
#define MDL_MULTIPART_HEADERS_MAX  8192 /* bytes of a part's headers */

typedef struct mdl_multipart_t mdl_multipart_t;

/** The headers of a part. */
typedef struct {
    const char *name;         /* of the form's field */
    const char *disposition;  /* the Content-Disposition, for the file's name */
    const char *content_type; /* or NULL */
} mdl_multipart_part_t;

/** What is read.  Any result but APR_SUCCESS ends the reading. */
typedef struct {
    apr_status_t (*part)(void *baton, const mdl_multipart_part_t *part);
    /** Bytes of the last part. */
    apr_status_t (*bytes)(void *baton, const char *bytes, apr_size_t length);
    void *baton;
} mdl_multipart_sink_t;

/** A reader, in p, of a body with this Content-Type (NULL: none).  NULL unless it is
    multipart/form-data with a boundary that RFC 2046 allows. */
mdl_multipart_t *mdl_multipart_make(const char *content_type, const mdl_multipart_sink_t *sink,
                                    apr_pool_t *p);

/** Reads the next bytes.  Returns what sink has returned, or APR_EINVAL for a malformed body, also
    for headers that are too long.  After an error nothing more may be read. */
apr_status_t mdl_multipart_read(mdl_multipart_t *multipart, const char *bytes, apr_size_t length);

/** Whether the last boundary has come; before that the body is incomplete. */
int mdl_multipart_is_over(const mdl_multipart_t *multipart);

/** How long the last part is, as far as a body of length bytes tells when the part begins, if no
    other follows; -1: the body is too short. */
apr_int64_t mdl_multipart_last_length(const mdl_multipart_t *multipart, apr_int64_t length);

#endif
