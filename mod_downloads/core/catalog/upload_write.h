/*
 * Writes the bytes of an upload: the whole file at once, or a piece at its end.  Decides what may
 * be written in which state, how much, and when the upload has all its bytes.  They go into an
 * object if there is a store, else into a partial file.
 *
 *   mdl_upload_write_begin     admits the writer and locks the upload: one at a time
 *   mdl_upload_write_append    for each buffer
 *   mdl_upload_write_end       when all bytes have come, or mdl_upload_write_cut when they won't
 *
 * Bytes that arrived before a cut are kept, unless they are a form's, which can't go on; of those
 * of an object up to a part may be lost when this process dies, or the store fails
 * (storage/object_writer.h).  A refused write changes nothing, unless it turns out too long or
 * malformed on the way: then a whole file has already replaced earlier bytes, and a piece has set
 * the upload's size if it told one.
 */
#ifndef MDL_CORE_CATALOG_UPLOAD_WRITE_H
#define MDL_CORE_CATALOG_UPLOAD_WRITE_H

#include "base/crypto.h"
#include "core/catalog/upload_object.h"

typedef struct {
    const char *id;
    mdl_storage_t *storage;
    apr_int64_t max_size; /* of an upload of unknown size */
    apr_int64_t quota;    /* of the shop's storage; 0: none */
    /** Runs an effect on a connection held only for it: the bytes may take hours. */
    apr_status_t (*run)(void *baton, mdl_db_run_fn *how, mdl_effect_fn *effect, void *arg);
    void *baton;
    mdl_upload_object_t object; /* in: writer, spool, owe; out: why */
    /* What the writer announces. */
    int whole;            /* whether all bytes of the file come; else a piece */
    int is_form;          /* of a whole file: a cut leaves nothing */
    apr_int64_t offset;   /* of a piece: where it begins */
    apr_int64_t length;   /* of this write; -1: not told */
    apr_int64_t size;     /* of the file; -1: not told */
    mdl_digest_t *digest; /* to check this write by checksum, in base64; or NULL */
    const char *checksum;
    mdl_problem_t *problem;
    /* Out. */
    mdl_upload_t *upload; /* NULL: no such upload */
    apr_int64_t arrived;  /* bytes so far, if a piece began elsewhere, if the object store failed,
                             and at the end; else -1 */
    /* Private. */
    apr_pool_t *pool;
    mdl_partial_t *partial; /* NULL: the bytes go into the object */
    mdl_db_t *db;           /* while a transaction takes the write */
    int is_refused;         /* whether its bytes must not be kept */
} mdl_upload_write_t;

/**
 * Refused: 404 upload_not_found, 410 upload_gone, 409 upload_finished (to a whole file), 409
 * upload_offset_conflict, 413 request_too_large, 422 storage_quota_exceeded, 400 invalid_request,
 * 423 upload_locked while another write runs.  An error ends the write.
 *
 * This and the next two return the errors of the store (base/http/object_store.h), too.  Once it
 * has lost bytes, a piece is refused with 409 upload_offset_conflict and 0 bytes; a whole file gets
 * MDL_OBJECT_EAWAY.
 */
apr_status_t mdl_upload_write_begin(mdl_upload_write_t *write, apr_pool_t *p);

/**
 * Refused: 413 when the file becomes too large, 422 storage_quota_exceeded, 409 upload_finished
 * when an upload of unknown size was aborted in the meantime, 423 upload_locked when this process
 * was silent for so long that another write began.  After an error, mdl_upload_write_cut
 * must follow.
 */
apr_status_t mdl_upload_write_append(mdl_upload_write_t *write, const char *data,
                                     apr_size_t length);

/**
 * Refused: 460 checksum_mismatch (the piece has been removed), 400 when a whole file is too short,
 * 409 upload_finished when the upload was aborted in the meantime, 423 as above.  If all bytes came
 * in this write, or are in the object, they become a blob; else they stay a partial file or object.
 */
apr_status_t mdl_upload_write_end(mdl_upload_write_t *write);

/** Keeps the bytes that arrived, unless a checksum was announced or they are a form's. */
void mdl_upload_write_cut(mdl_upload_write_t *write);

#endif
