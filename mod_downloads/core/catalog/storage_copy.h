/*
 * Copies blobs from the folder into objects, or from objects into the folder, while the service
 * runs.  A blob has its new place once the copy is complete and has the blob's SHA-256; then new
 * downloads read it there, and its former place keeps the bytes for those that have begun
 * (core/catalog/storage_clean.h).  A process that is killed leaves nothing but a stray key
 * (core/catalog/stray_object.h) or a partial file.
 *
 * Several threads can work on one copy, and several processes beside each other.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_COPY_H
#define MDL_CORE_CATALOG_STORAGE_COPY_H

#include "core/catalog/storage_verify.h"
#include "db/db.h"
#include "storage/storage.h"

typedef enum { MDL_COPY_INTO_OBJECTS, MDL_COPY_INTO_FOLDER } mdl_copy_way_t;

/** What has become of a blob. */
typedef struct {
    const mdl_blob_t *blob; /* at its former place; without crc32 */
    int copied;
    mdl_blob_fault_t fault; /* why it was not copied, */
    apr_status_t rv;        /* and the error of MDL_BLOB_UNREADABLE */
} mdl_copied_t;

typedef struct {
    mdl_storage_t *storage; /* with folder and store */
    mdl_copy_way_t way;
    apr_int64_t rate; /* bytes a second, of all threads together, at least 64 KiB; 0: no limit */
    /* Asked before each blob: whether to begin no other. */
    int (*stopped)(void *baton);
    /* Called behind each blob, by one thread at a time. */
    void (*done)(void *baton, const mdl_copied_t *copied);
    void *baton;
} mdl_storage_copying_t;

typedef struct mdl_storage_copy_t mdl_storage_copy_t;

/** Prepares a copy of all blobs that are not at the new place, in an order of its own. */
apr_status_t mdl_storage_copy_create(mdl_storage_copy_t **copy,
                                     const mdl_storage_copying_t *copying, apr_pool_t *p);

/**
 * Copies blobs until none is left, or it is stopped.  Each thread calls this once, with a
 * connection and a pool of its own.  An error ends the thread's part: one of the database, or
 * APR_ENOSPC, an error of base/http/object_store.h or of the folder with a sentence in *why, in p.
 * *why is NULL otherwise.
 */
apr_status_t mdl_storage_copy_run(mdl_storage_copy_t *copy, mdl_db_t *db, const char **why,
                                  apr_pool_t *p);

#endif
