/*
 * A write whose bytes go into an object, for upload_write.c.
 *
 * The upload's row says who writes, by the meter of the process (core/download/meter.h), and how
 * far the object has come, so that the next write goes on at any node: after each part, unless a
 * checksum has to be compared first, and at the end of the write.  Once the meter of a dead process
 * is gone, another may write.
 *
 * Errors are those of base/http/object_store.h and of the database; APR_ENOENT if the upload is
 * over, or another write has taken it over, which a long silence of this process allows.
 */
#ifndef MDL_CORE_CATALOG_UPLOAD_OBJECT_H
#define MDL_CORE_CATALOG_UPLOAD_OBJECT_H

#include "core/catalog/upload_write.h"

/** Makes this the write of its upload, which the transaction has locked and read. */
apr_status_t mdl_upload_object_take(mdl_db_t *db, mdl_upload_write_t *write, apr_pool_t *p);

/** After a transaction that may have done so, or not: undoes it as soon as possible. */
void mdl_upload_object_owe(const mdl_upload_write_t *write);

/** Opens the object, after that transaction.  After an error, mdl_upload_object_close must follow.
 */
apr_status_t mdl_upload_object_open(mdl_upload_write_t *write);

/** Appends bytes; records says whether parts are recorded when they have come. */
apr_status_t mdl_upload_object_append(mdl_upload_write_t *write, const char *data,
                                      apr_size_t length, int records);

/** Makes a blob of all bytes.  After an error that is not APR_ENOENT, the upload is still this
    write's, unless its end is owed. */
apr_status_t mdl_upload_object_finish(mdl_upload_write_t *write);

/** Ends the write, unless it has finished or was never taken.  Keeps its bytes, or takes them back.
    Sets write->arrived if the store fails, or has failed before. */
apr_status_t mdl_upload_object_close(mdl_upload_write_t *write, int keeps);

#endif
