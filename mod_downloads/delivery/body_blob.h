/*
 * A file of the storage folder as what a request sends.
 */
#ifndef MDL_DELIVERY_BODY_BLOB_H
#define MDL_DELIVERY_BODY_BLOB_H

#include <httpd.h>

#include "delivery/body.h"
#include "storage/storage.h"

/**
 * Opens the bytes of that SHA-256 for a request.  Returns APR_ENOENT where there are none, and
 * APR_EINCOMPLETE where they are not size bytes long.
 */
apr_status_t mdl_body_blob_open(mdl_body_t **body, request_rec *r, mdl_storage_t *storage,
                                const char *sha256, apr_int64_t size);

#endif
