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
 * Makes a body of an archive, which must live until all of it was taken, like call.  Checks its
 * files first: APR_ENOENT when a file is missing, APR_EINCOMPLETE when its length differs, with its
 * index in *faulty.  The store is not asked for objects; those that are known to be missing are.
 * Files are opened as they are sent, 16 at a time, and objects read one after the other; the next
 * small ones are asked for ahead.
 */
apr_status_t mdl_body_archive_open(mdl_body_t **body, request_rec *r, const mdl_storage_t *storage,
                                   const mdl_archive_t *archive, mdl_object_call_t *call,
                                   int *faulty);

/** If the first file from an offset on is an object, waits until the store has begun to answer.
    Errors: base/http/object_reader.h. */
apr_status_t mdl_body_archive_ready(mdl_body_t *body, apr_int64_t offset);

/** The index of the file that the last call could not read; -1: none. */
int mdl_body_archive_faulty(const mdl_body_t *body);

/** Ends all requests to the store, once what was taken has been passed on. */
void mdl_body_archive_close(mdl_body_t *body);

#endif
