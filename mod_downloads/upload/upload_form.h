/*
 * A form of the settings that brings a file, for browsers without JavaScript: POST of
 * multipart/form-data to the upload URL.  The last field is the file, named "file"; up to four may
 * stand before it, of which "title" counts.  Once the last boundary has come, the upload is
 * completed as by the API.  A cut leaves nothing.
 */
#ifndef MDL_UPLOAD_UPLOAD_FORM_H
#define MDL_UPLOAD_UPLOAD_FORM_H

#include "api/request.h"

/**
 * Handles the POST.  *page gets the path of the upload's page in the settings, below
 * DownloadsSettingsURL, for the client to be led to; NULL when the upload is none of a form, or
 * does not exist (404 upload_not_found).  Returns APR_ENOTIMPL for an upload of the API,
 * MDL_EPROBLEM, AP_FILTER_ERROR when httpd has answered already, or another error.
 */
apr_status_t mdl_upload_form_take(mdl_request_t *request, const char *id, const char **page);

#endif
