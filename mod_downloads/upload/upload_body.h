/*
 * The requests that write an upload's bytes: PUT, which brings all of them, and tus's PATCH, which
 * brings a piece.  One request at a time writes an upload.  Bytes that arrived before a cut are
 * kept.  What is refused changes nothing, but for what turns out too long or malformed on its way:
 * a PUT has replaced what was there, and a PATCH has set the upload's length if it told one.
 */
#ifndef MDL_UPLOAD_UPLOAD_BODY_H
#define MDL_UPLOAD_UPLOAD_BODY_H

#include "api/request.h"
#include "core/catalog/upload.h"

/** A request to an upload URL. */
typedef struct {
    mdl_request_t request;
    mdl_storage_t *storage;
    const char *id;
    int put; /* the whole body and not a piece */
} mdl_upload_exchange_t;

/** Reads the upload; a connection is held as long as that takes.  Refused: 404, 410 when it expired
    or was aborted (409 to a PUT). */
apr_status_t mdl_upload_read(mdl_upload_exchange_t *exchange, mdl_upload_t **upload);

/** Runs an effect that writes, on a connection of its own. */
apr_status_t mdl_upload_commit(mdl_upload_exchange_t *exchange, mdl_effect_fn *effect, void *arg);

/** Sets Upload-Offset and, while the upload is open, Upload-Expires. */
void mdl_upload_show(request_rec *r, const mdl_upload_t *upload, apr_int64_t offset);

/** Does what a PUT or a PATCH asks for.  Returns MDL_EPROBLEM, AP_FILTER_ERROR when httpd has
    answered already, or what failed. */
apr_status_t mdl_upload_write(mdl_upload_exchange_t *exchange);

#endif
