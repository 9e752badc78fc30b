/*
 * The CORS headers by which a page of another origin may write to an upload URL (Fetch standard).
 */
#ifndef MDL_UPLOAD_CORS_H
#define MDL_UPLOAD_CORS_H

#include <httpd.h>

#include "core/settings/settings.h"

/** Sets the response's CORS headers if the request's origin is one of DownloadsUploadOrigin, or
    the settings'; those
    of a preflight too when the request is one. */
void mdl_upload_cors(request_rec *r, const mdl_settings_t *settings);

#endif
