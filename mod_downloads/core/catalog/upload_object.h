/*
 * A write of an upload whose bytes go into an object (core/catalog/upload_write.h has the rules).
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

#include "core/catalog/upload.h"
#include "storage/object_writer.h"

typedef struct {
    const char *id; /* of the upload */
    mdl_storage_t *storage;
    /** Runs an effect on a connection held only for it. */
    apr_status_t (*run)(void *baton, mdl_db_run_fn *how, mdl_effect_fn *effect, void *arg);
    void *baton;
    const char *writer; /* this process's meter, which must beat */
    const char *spool;  /* the folder for bytes that make no part yet */
    /** Runs an effect, whose arg is in pool, as soon as the database can be reached, and destroys
        the pool: it tells the database that a write has ended. */
    void (*owe)(mdl_effect_fn *effect, void *arg, apr_pool_t *pool);
    /* Out. */
    apr_int64_t arrived; /* -1; set to the bytes that are left, if the store has failed */
    const char *why;     /* why it has failed, for the operator */
    /* Private. */
    apr_pool_t *pool;
    mdl_object_writer_t *bytes; /* NULL: closed */
    const char *write_id;
    apr_int64_t offset; /* where this write begins */
    const char *key;    /* of the object */
    const char *state;  /* of the object when the write began; NULL: none */
    int is_taken;       /* whether this is the upload's write */
    apr_status_t failed;
} mdl_upload_object_t;

/** Prepares a write, in p. */
void mdl_upload_object_init(mdl_upload_object_t *object, apr_pool_t *p);

/** Whether another write, of a living process, has an upload that mdl_upload_find has read. */
int mdl_upload_object_is_locked(const mdl_upload_object_t *object, const mdl_upload_t *upload);

/** Makes this the write of an upload that the transaction has locked and read, from offset on: the
    bytes that have arrived, or 0, which begins anew. */
apr_status_t mdl_upload_object_take(mdl_db_t *db, mdl_upload_object_t *object,
                                    const mdl_upload_t *upload, apr_int64_t offset, apr_pool_t *p);

/** After a transaction that may have done so, or not: undoes it as soon as possible. */
void mdl_upload_object_owe(const mdl_upload_object_t *object);

/** Opens the object, after that transaction, for a file of size bytes in all; -1: not known.  After
    an error, mdl_upload_object_close must follow. */
apr_status_t mdl_upload_object_open(mdl_upload_object_t *object, apr_int64_t size);

/** Appends bytes; records says whether parts are recorded when they have come. */
apr_status_t mdl_upload_object_append(mdl_upload_object_t *object, const char *data,
                                      apr_size_t length, int records);

/** Makes a blob of all bytes.  After an error that is not APR_ENOENT, the upload is still this
    write's, unless its end is owed. */
apr_status_t mdl_upload_object_finish(mdl_upload_object_t *object);

/** Ends the write, unless it has finished or was never taken.  Keeps its bytes, or takes them
    back. */
apr_status_t mdl_upload_object_close(mdl_upload_object_t *object, int keeps);

#endif
