/*
 * The bytes of a file on their way into the storage: into an object if there is a store, else into
 * a partial file of the folder.  Belongs to one thread.
 *
 * Errors are those of the folder (storage/storage.h) or of the store (base/http/object_store.h).
 */
#ifndef MDL_STORAGE_INCOMING_H
#define MDL_STORAGE_INCOMING_H

#include "storage/object_writer.h"

typedef struct mdl_incoming_t mdl_incoming_t;

typedef struct {
    const char *id;  /* names the partial file */
    const char *key; /* this and the next: as in mdl_object_writing_t */
    const char *state;
    int parallel;
    apr_interval_time_t patience; /* with the store */
    int (*stopped)(void *baton);  /* whether to give up, asked now and then */
    void *baton;
} mdl_incoming_of_t;

/** Opens; of is copied.  As mdl_partial_open, or mdl_object_writer_open. */
apr_status_t mdl_incoming_open(mdl_incoming_t **incoming, mdl_storage_t *storage,
                               const mdl_incoming_of_t *of, apr_pool_t *p);

/** Whether the bytes become an object. */
int mdl_incoming_is_object(const mdl_incoming_t *incoming);

/** The bytes so far. */
apr_int64_t mdl_incoming_size(const mdl_incoming_t *incoming);

/** Says how many bytes will come in all, -1: not known; APR_ENOSPC if there is no room for them. */
apr_status_t mdl_incoming_expect(mdl_incoming_t *incoming, apr_int64_t total);

apr_status_t mdl_incoming_append(mdl_incoming_t *incoming, const char *data, apr_size_t length);

/** Begins anew with no bytes. */
apr_status_t mdl_incoming_restart(mdl_incoming_t *incoming);

/** How far an object has come for good (mdl_object_writer_state); NULL for a partial file. */
const char *mdl_incoming_state(const mdl_incoming_t *incoming, apr_pool_t *p);

/** Bytes that have come for good, after which there is a new state; 0 for a partial file. */
apr_int64_t mdl_incoming_lasting(const mdl_incoming_t *incoming);

/** As mdl_partial_digest. */
apr_status_t mdl_incoming_digest(mdl_incoming_t *incoming, mdl_blob_t *blob, apr_pool_t *p);

typedef struct {
    mdl_incoming_t *incoming;
    const mdl_blob_t *blob; /* from mdl_incoming_digest */
    apr_status_t rv;        /* the result */
    const char *why;        /* this and the next, in p: as mdl_incoming_why and mdl_incoming_keep */
    const char *state;
} mdl_incoming_store_t;

/** Makes blobs of all, and closes them in every case; p is scratch.  As mdl_partial_commit_all, or
    mdl_object_writer_complete. */
void mdl_incoming_store_all(mdl_incoming_store_t *stores, int count, apr_pool_t *p);

/** Closes.  The bytes that have come stay: those of a partial file, or those that are in the state
    of an object, which is returned in p (NULL for a partial file). */
const char *mdl_incoming_keep(mdl_incoming_t *incoming, apr_pool_t *p);

/** Closes without keeping the bytes.  Those of an object are a stray's; p is scratch. */
void mdl_incoming_discard(mdl_incoming_t *incoming, apr_pool_t *p);

/** Why the store refused the last call, for the operator; NULL for a partial file. */
const char *mdl_incoming_why(const mdl_incoming_t *incoming);

#endif
