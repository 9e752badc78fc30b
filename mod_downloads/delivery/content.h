/*
 * The bytes of a download: a file of the folder, an object of the store, or an archive of both.
 * What can't be read is logged here, and an object that is gone is recorded as missing.
 *
 * Steps: make, open, ready, send; open alone for a request that gets no bytes.
 */
#ifndef MDL_DELIVERY_CONTENT_H
#define MDL_DELIVERY_CONTENT_H

#include <httpd.h>

#include "core/download/download.h"
#include "delivery/body.h"
#include "delivery/range.h"
#include "metering/transfer.h"

typedef struct {
    request_rec *r;
    const mdl_signed_file_t *link;
    mdl_download_t *download; /* its object changes if it is found elsewhere */
    mdl_body_t *body;         /* out, of mdl_content_open and mdl_content_ready */
    mdl_transfer_t *transfer; /* set before mdl_content_send; if it is cut, reading ends */
    mdl_object_call_t call;
} mdl_content_t;

/** The content of a download that was looked at (core/download/download.h), in r->pool. */
mdl_content_t *mdl_content_make(request_rec *r, const mdl_signed_file_t *link,
                                mdl_download_t *download);

/*
 * Both return an error of the folder, or APR_ENOENT or APR_EINCOMPLETE if bytes are missing; an
 * error of base/http/object_store.h or of the database if trying again may help.
 */

/** Opens the file, or checks those of an archive.  Asks the store for nothing: an object that is
    known to be missing, or damaged, counts as missing until "downloadsctl storage verify" or an
    import finds its bytes. */
apr_status_t mdl_content_open(mdl_content_t *content);

/** The most ranges that one request gets: each that is in an object is a request to the store. */
int mdl_content_ranges(const mdl_content_t *content);

/** Asks the store for the first byte of a range, unless a file has it, and waits until the store
    has begun to answer.  An object that has moved is looked for in its new place. */
apr_status_t mdl_content_ready(mdl_content_t *content, const mdl_range_t *range);

/** Sends the response, whose headers are set, and ends all requests to the store. */
apr_status_t mdl_content_send(mdl_content_t *content);

#endif
