/*
 * An archive as the body of a response.
 */
#ifndef MDL_DELIVERY_BODY_ARCHIVE_H
#define MDL_DELIVERY_BODY_ARCHIVE_H

#include <httpd.h>

#include "core/download/archive.h"
#include "delivery/body.h"
#include "storage/storage.h"

/**
 * Makes a body of an archive, which must live until all of it was taken.  Checks its files first:
 * APR_ENOENT when a file is missing, APR_EINCOMPLETE when its length differs, with its index in
 * *missing.  Files are opened as they are sent, 16 at a time.
 */
apr_status_t mdl_body_archive_open(mdl_body_t **body, request_rec *r, const mdl_storage_t *storage,
                                   const mdl_archive_t *archive, int *missing);

#endif
