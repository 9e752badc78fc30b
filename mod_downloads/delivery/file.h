/*
 * A file, or an archive of all files of an assignment, by a signed URL.
 */
#ifndef MDL_DELIVERY_FILE_H
#define MDL_DELIVERY_FILE_H

#include <httpd.h>

#include "core/service/service.h"

/**
 * GET and HEAD of a file's URL (core/download/signed_url.h).  A GET that sends bytes of the file
 * opens the URL's session, which costs a download; HEAD, a prefetch, 304, 412, 416 and a file that
 * is missing on our side cost nothing.
 */
int mdl_file_serve(request_rec *r, const mdl_service_t *service, const char *token);

/** The same for an archive's URL; it costs a download of each file. */
int mdl_file_serve_archive(request_rec *r, const mdl_service_t *service, const char *token);

/** 405 for any other method, to which the caller adds Allow. */
int mdl_file_wrong_method(request_rec *r, const mdl_service_t *service, const char *token);

#endif
