/*
 * The requests that write an upload's bytes: PUT, which brings the whole file, and tus's PATCH,
 * which brings a piece.  Headers and bodies are read here; core/catalog/upload_write.h has the
 * rules.
 */
#ifndef MDL_UPLOAD_UPLOAD_BODY_H
#define MDL_UPLOAD_UPLOAD_BODY_H

#include "api/request.h"
#include "core/catalog/upload.h"

/** Sets Upload-Offset and, while the upload is open, Upload-Expires. */
void mdl_upload_body_show(request_rec *r, const mdl_upload_t *upload, apr_int64_t offset);

/** Where a body's bytes go; any result but APR_SUCCESS ends the reading. */
typedef struct {
    apr_status_t (*take)(void *baton, const char *bytes, apr_size_t length);
    void *baton;
} mdl_upload_sink_t;

/** Reads a body to its end.  Refused: 403 shop_blocked once the shop is, 400 and 408 when the body
    does not arrive.  AP_FILTER_ERROR when httpd has answered already. */
apr_status_t mdl_upload_body_receive(mdl_request_t *request, apr_int64_t shop_id,
                                     const mdl_upload_sink_t *sink);

/** Handles a PUT (whole) or a PATCH to an upload.  Returns MDL_EPROBLEM, AP_FILTER_ERROR when httpd
    has answered already, or another error. */
apr_status_t mdl_upload_body_write(mdl_request_t *request, const char *id, int whole);

#endif
