/*
 * A file of the storage as the body of a response.
 */
#ifndef MDL_DELIVERY_BODY_BLOB_H
#define MDL_DELIVERY_BODY_BLOB_H

#include <httpd.h>

#include "delivery/body.h"
#include "storage/storage.h"

/** Opens a file.  Returns APR_ENOENT when it is missing, also when storage is NULL, and
    APR_EINCOMPLETE when it has another size. */
apr_status_t mdl_body_blob_open(mdl_body_t **body, request_rec *r, const mdl_storage_t *storage,
                                const mdl_blob_t *of);

#endif
