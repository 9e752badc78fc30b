/*
 * Checks that the storage has the bytes that the database knows.  Blobs are checked in the order of
 * their ids, in batches, in constant memory and while the service runs: a missing blob only counts
 * if something still refers to it.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_VERIFY_H
#define MDL_CORE_CATALOG_STORAGE_VERIFY_H

#include <apr_tables.h>

#include "db/db.h"
#include "storage/storage.h"

typedef enum {
    MDL_BLOB_MISSING,
    MDL_BLOB_WRONG_SIZE,
    MDL_BLOB_CHANGED,    /* its bytes have another SHA-256 */
    MDL_BLOB_UNREADABLE, /* denied to this process, or a disk error */
    MDL_BLOB_FAULTS
} mdl_blob_fault_t;
extern const char *const mdl_blob_fault_names[];

#define MDL_FAULT_ASSETS_MAX 10   /* read of a faulty blob */
#define MDL_FAULT_ORDERS_MAX 1000 /* counted of each asset */
#define MDL_FAULT_ORDERS     10   /* whose numbers are read */

/** An asset with a faulty blob. */
typedef struct {
    apr_int64_t id;
    apr_int64_t shop_id;
    const char *filename;
    const char *source_url;      /* as in mdl_asset_t */
    apr_array_header_t *numbers; /* const char *: of its first MDL_FAULT_ORDERS orders */
    int orders;                  /* number of its orders, at most MDL_FAULT_ORDERS_MAX */
} mdl_faulty_asset_t;

typedef struct {
    mdl_blob_t blob; /* without crc32 */
    mdl_blob_fault_t fault;
    apr_status_t rv;            /* for UNREADABLE */
    const char *place;          /* where it is, for people */
    apr_array_header_t *assets; /* mdl_faulty_asset_t *; none: it is an upload's or a former one */
    int more_assets;            /* whether there are more */
} mdl_faulty_blob_t;

typedef struct {
    const mdl_storage_t *storage;
    int full; /* whether to read the bytes, too */
    /* Called with each faulty blob, outside of transactions; p is cleared afterwards.  Returns
       whether the fault counts. */
    int (*found)(void *baton, const mdl_faulty_blob_t *blob, apr_pool_t *p);
    void *baton;
    void (*step)(void *baton, apr_int64_t looked); /* called behind each blob; or NULL */
    int few_objects;                               /* set by mdl_storage_sample */
    apr_int64_t looked;                            /* out: added to */
    apr_int64_t faults[MDL_BLOB_FAULTS];           /* out, likewise */
} mdl_storage_verify_t;

/**
 * Checks every blob.  Records which objects are missing, and which are there again; an object that
 * was recorded as missing must have its bytes.  Runs transactions of its own.  Returns an error of
 * the database, or one of the object store: MDL_OBJECT_EAWAY or MDL_OBJECT_EDENIED.
 */
apr_status_t mdl_storage_verify(mdl_db_t *db, mdl_storage_verify_t *verify, apr_pool_t *p);

#define MDL_STORAGE_SAMPLE         1000
#define MDL_STORAGE_SAMPLE_OBJECTS 50 /* each costs a request */

/** Checks the blobs of the newest MDL_STORAGE_SAMPLE assets and as many random blobs, or all blobs
    if there are no more; but few of those in objects, MDL_STORAGE_SAMPLE_OBJECTS of a batch.
    *total gets the number of all blobs. */
apr_status_t mdl_storage_sample(mdl_db_t *db, mdl_storage_verify_t *verify, apr_int64_t *total,
                                apr_pool_t *p);

#endif
