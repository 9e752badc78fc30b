/*
 * The resource uploads: POST /assets/uploads, GET and DELETE /assets/uploads/{id}, POST
 * /assets/uploads/{id}/complete.
 */
#ifndef MDL_API_UPLOADS_H
#define MDL_API_UPLOADS_H

#include "api/request.h"
#include "core/catalog/upload.h"

/** Fills complete for the effect that completes an upload.  Refuses with 503 without storage. */
apr_status_t mdl_upload_prepare(mdl_request_t *request, mdl_upload_complete_t *complete,
                                const char *id);

/** Writes the asset of a completed upload and the job that still has to verify it, or null. */
void mdl_upload_write_asset(mdl_request_t *request, const mdl_upload_complete_t *complete);

#endif
