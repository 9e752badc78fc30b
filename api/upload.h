/*
 * Upload URLs (contract, section 7).  No upload can be begun yet, so each URL is unknown.
 */
#ifndef MDL_API_UPLOAD_H
#define MDL_API_UPLOAD_H

#include <httpd.h>

#define MDL_UPLOAD_HANDLER "downloads-upload"

/** Answers 404 upload_not_found in the API's error envelope. */
int mdl_upload_handle(request_rec *r);

#endif
