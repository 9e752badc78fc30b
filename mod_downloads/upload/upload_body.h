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

/** Handles a PUT (whole) or a PATCH to an upload.  Returns MDL_EPROBLEM, AP_FILTER_ERROR when httpd
    has answered already, or another error. */
apr_status_t mdl_upload_body_write(mdl_request_t *request, const char *id, int whole);

#endif
