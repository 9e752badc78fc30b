/*
 * Writes of an upload's bytes (core/catalog/upload_write.h), as requests make them: to the upload's
 * URL, and to complete an upload.
 */
#ifndef MDL_API_UPLOAD_BYTES_H
#define MDL_API_UPLOAD_BYTES_H

#include "api/request.h"
#include "core/catalog/upload_write.h"

/** Runs an effect and gives the connection back: the run of a write, whose baton is the request. */
apr_status_t mdl_upload_bytes_run(void *request, mdl_db_run_fn *how, mdl_effect_fn *effect,
                                  void *arg);

/** Fills a write with what does not depend on what is announced. */
void mdl_upload_bytes_prepare(mdl_upload_write_t *write, mdl_request_t *request, const char *id);

/** mdl_upload_write_begin, with the process's heartbeat.  After a success, one of the next two must
    follow. */
apr_status_t mdl_upload_bytes_begin(mdl_upload_write_t *write, mdl_request_t *request);

/** mdl_upload_write_end, mdl_upload_write_cut. */
apr_status_t mdl_upload_bytes_end(mdl_upload_write_t *write);
void mdl_upload_bytes_cut(mdl_upload_write_t *write);

/** Sets the problem for an error of a write, with Retry-After, and logs it.  Returns MDL_EPROBLEM,
    or the error if the caller has to answer it. */
apr_status_t mdl_upload_bytes_failed(const mdl_upload_write_t *write, mdl_request_t *request,
                                     apr_status_t rv);

/** If all bytes of an upload are in an object that is no blob yet, makes it one.  An upload that is
    unknown or not complete is left to the effect that follows.  Refused: as
    mdl_upload_bytes_failed. */
apr_status_t mdl_upload_bytes_finish(mdl_request_t *request, const char *id, apr_int64_t shop_id);

#endif
