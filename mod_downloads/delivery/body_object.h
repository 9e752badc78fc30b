/*
 * An object of the store as the body of a response, or of one file in an archive.  It is asked for
 * from the first byte that is wanted; a part that does not follow the one before is asked for anew.
 *
 * Errors: base/http/object_reader.h.
 */
#ifndef MDL_DELIVERY_BODY_OBJECT_H
#define MDL_DELIVERY_BODY_OBJECT_H

#include "base/http/object_store.h"
#include "delivery/body.h"
#include "storage/storage.h"

/** Makes a body in p, and asks nobody.  call, and blob's key, must live until all was taken. */
mdl_body_t *mdl_body_object_make(mdl_object_store_t *store, const mdl_blob_t *blob,
                                 mdl_object_call_t *call, apr_pool_t *p);

/** Sends the request for the bytes from an offset to body->until, unless that was done, and waits
    for nothing. */
apr_status_t mdl_body_object_ask(mdl_body_t *body, apr_int64_t offset);

/** Asks as above, and waits until the store has begun to answer. */
apr_status_t mdl_body_object_ready(mdl_body_t *body, apr_int64_t offset);

/** Ends the request.  What was taken is not valid any more; more can be taken. */
void mdl_body_object_close(mdl_body_t *body);

#endif
