/*
 * A file of the storage as the body of a response.
 */
#ifndef MDL_DELIVERY_BODY_BLOB_H
#define MDL_DELIVERY_BODY_BLOB_H

#include <httpd.h>

#include "delivery/body.h"
#include "storage/storage.h"

/** Opens the file with that SHA-256.  Returns APR_ENOENT when it is missing, and APR_EINCOMPLETE
    when it is not size bytes long. */
apr_status_t mdl_body_blob_open(mdl_body_t **body, request_rec *r, mdl_storage_t *storage,
                                const char *sha256, apr_int64_t size);

#endif
