/*
 * An object on its way into the store: bytes are gathered until they make a part, and parts are
 * sent (S3's multipart upload), or, when no more than one part has come, the object at once.
 * Nothing is to be seen under the key before mdl_object_writer_complete.
 *
 * How far an object has come is a short text, its state.  A writer on any machine can go on from
 * it. The caller keeps it in the database, where the key is known before its first byte
 * (core/catalog/stray_object.h).
 *
 * A writer belongs to one thread, and its calls wait for the store.  Errors:
 * base/http/object_store.h.
 */
#ifndef MDL_STORAGE_OBJECT_WRITER_H
#define MDL_STORAGE_OBJECT_WRITER_H

#include "storage/storage.h"

typedef struct mdl_object_writer_t mdl_object_writer_t;

typedef struct {
    mdl_object_store_t *store;
    const char *key;   /* of the object, if there is no state */
    const char *state; /* where an earlier writer left off; NULL: at the beginning */
    /* How many parts are sent at a time, by threads of their own, while the next one is gathered in
       memory: up to (parallel + 1) parts of it.  0: this thread sends them itself, from a file
       without a name, so that a slow writer takes no memory. */
    int parallel;
    const char *spool;      /* the folder of that file */
    mdl_object_call_t call; /* patience, and when to stop */
} mdl_object_writing_t;

/** Begins, or goes on; asks nobody.  writing is copied.  MDL_OBJECT_EBROKEN if state is not a
    state. */
apr_status_t mdl_object_writer_open(mdl_object_writer_t **writer,
                                    const mdl_object_writing_t *writing, apr_pool_t *p);

/** Says how many bytes will come in all; -1: not known.  Before the first byte.  APR_ENOSPC if that
    is more than an object can have. */
apr_status_t mdl_object_writer_expect(mdl_object_writer_t *writer, apr_int64_t total);

/** The bytes so far, with those that wait. */
apr_int64_t mdl_object_writer_size(const mdl_object_writer_t *writer);

/** Takes bytes.  APR_ENOSPC as above.  After an error only state and close may follow. */
apr_status_t mdl_object_writer_append(mdl_object_writer_t *writer, const char *data,
                                      apr_size_t length);

/** Begins anew with no bytes, under the same key. */
void mdl_object_writer_restart(mdl_object_writer_t *writer);

/** How far the object has come for good, in p.  Bytes that wait are not in it.  NULL if nothing has
    come and the key may have been used. */
const char *mdl_object_writer_state(const mdl_object_writer_t *writer, apr_pool_t *p);

/** The key in a state, in p. */
const char *mdl_object_writer_key(const char *state, apr_pool_t *p);

/** The same if no byte has been sent, else NULL. */
const char *mdl_object_writer_unused_key(const char *state, apr_pool_t *p);

/** The bytes that have come for good: those that are in the state. */
apr_int64_t mdl_object_writer_lasting(const mdl_object_writer_t *writer);

/** Writes the bytes that wait into an object of their own, whose key begins with the object's, so
    that they are in the state, too. */
apr_status_t mdl_object_writer_save(mdl_object_writer_t *writer);

/** Removes such objects that are no longer in the state, once that was recorded.  Errors are
    ignored. */
void mdl_object_writer_clean(mdl_object_writer_t *writer);

/** What the keys of such objects, of the object with this key, begin with, in p. */
const char *mdl_object_writer_tails_key(const char *key, apr_pool_t *p);

/** Ends the bytes, and computes the digests into blob (in p, object included).  To be compared
    before mdl_object_writer_complete. */
apr_status_t mdl_object_writer_digest(mdl_object_writer_t *writer, mdl_blob_t *blob, apr_pool_t *p);

/** Makes the object, after mdl_object_writer_digest.  MDL_OBJECT_EBROKEN if parts are gone or are
    not those that were sent: everything must be written again, under a new key. */
apr_status_t mdl_object_writer_complete(mdl_object_writer_t *writer);

/** Why the last call failed, for the operator's log; never NULL. */
const char *mdl_object_writer_why(const mdl_object_writer_t *writer);

/** Waits for the threads, and frees memory and file; returns the state by then, in p.  Destroying
    the writer's pool does the same. */
const char *mdl_object_writer_close(mdl_object_writer_t *writer, apr_pool_t *p);

#endif
