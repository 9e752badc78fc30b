/*
 * Upload URLs (contract, section 7): DownloadsUploadURL and a token, which is the right to write
 * one upload.  PUT with the whole body, or tus 1.0.0 with the extensions expiration, checksum and
 * termination:
 *
 *   OPTIONS          what the server can do, and a browser's preflight
 *   HEAD             how many bytes have arrived
 *   PATCH, PUT       upload_body.h
 *   DELETE           aborts the upload
 *   POST             upload_form.h; only to an upload that the settings made
 */
#ifndef MDL_UPLOAD_UPLOAD_URL_H
#define MDL_UPLOAD_UPLOAD_URL_H

#include <httpd.h>

#include "core/service/service.h"

#define MDL_UPLOAD_HANDLER "downloads-upload"

/** Reads DownloadsUploadURL; for each httpd child, before its threads. */
void mdl_upload_url_child_init(apr_pool_t *p, const mdl_service_t *service);

/** Handles a request for MDL_UPLOAD_HANDLER; errors have the API's envelope. */
int mdl_upload_url_handle(request_rec *r, const mdl_service_t *service);

/** The name of an operation by its number (request_notes.h): "PATCH".  NULL after the last. */
const char *mdl_upload_url_operation(int number, apr_pool_t *p);

#endif
