/*
 * The resource uploads: POST /assets/uploads, GET and DELETE /assets/uploads/{id}, POST
 * /assets/uploads/{id}/complete.
 */
#ifndef MDL_API_UPLOADS_H
#define MDL_API_UPLOADS_H

#include "api/request.h"
#include "core/catalog/upload.h"

/** Fills what an effect needs to complete an upload.  Refused with 503 where there is no storage.
 */
apr_status_t mdl_upload_prepare(mdl_request_t *request, mdl_upload_complete_t *complete,
                                const char *id);

/** Writes the asset of a completed upload, with its job while that is to be done. */
void mdl_upload_write_asset(mdl_request_t *request, const mdl_upload_complete_t *complete);

#endif
