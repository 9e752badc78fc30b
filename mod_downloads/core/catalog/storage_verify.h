/*
 * Whether the bytes that the database knows are in the storage.  Blobs are looked at in the order
 * of their ids, some at a time, in constant memory and while the service runs: one that is not
 * there counts only if somebody refers to it still.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_VERIFY_H
#define MDL_CORE_CATALOG_STORAGE_VERIFY_H

#include <apr_tables.h>

#include "db/db.h"
#include "storage/storage.h"

typedef enum {
    MDL_BLOB_MISSING,
    MDL_BLOB_WRONG_SIZE,
    MDL_BLOB_CHANGED,    /* its bytes are not those of its name */
    MDL_BLOB_UNREADABLE, /* for this process, or for the disk */
    MDL_BLOB_FAULTS
} mdl_blob_fault_t;
extern const char *const mdl_blob_fault_names[];

#define MDL_FAULT_ASSETS_MAX 10   /* of a faulty blob, that are read */
#define MDL_FAULT_ORDERS_MAX 1000 /* of each of them, that are counted */
#define MDL_FAULT_ORDERS     10   /* and whose numbers are read */

/** An asset that has a faulty blob. */
typedef struct {
    apr_int64_t id;
    apr_int64_t shop_id;
    const char *filename;
    const char *source_url; /* as mdl_asset_t has it */
    apr_array_header_t
        *numbers; /* const char *: of the first MDL_FAULT_ORDERS orders it is given to */
    int orders;   /* how many these are in all; MDL_FAULT_ORDERS_MAX: that or more */
} mdl_faulty_asset_t;

typedef struct {
    const char *sha256;
    mdl_blob_fault_t fault;
    apr_int64_t size;           /* that it should have */
    apr_status_t rv;            /* of UNREADABLE */
    const char *place;          /* where its bytes belong */
    apr_array_header_t *assets; /* mdl_faulty_asset_t *; none: an upload that is to be completed */
    int more_assets;            /* there are others */
} mdl_faulty_blob_t;

typedef struct {
    const mdl_storage_t *storage;
    int full; /* reads the bytes, too */
    /* Called with each faulty blob, in no transaction; p is cleared afterwards.  It returns whether
       the fault counts. */
    int (*found)(void *baton, const mdl_faulty_blob_t *blob, apr_pool_t *p);
    void *baton;
    apr_int64_t looked;                  /* out, from 0 */
    apr_int64_t faults[MDL_BLOB_FAULTS]; /* out, likewise */
} mdl_storage_verify_t;

/** Looks at every blob.  Runs transactions of its own; returns an error of the database. */
apr_status_t mdl_storage_verify(mdl_db_t *db, mdl_storage_verify_t *verify, apr_pool_t *p);

#define MDL_STORAGE_SAMPLE 1000

/** The same for the blobs of the newest MDL_STORAGE_SAMPLE assets, and as many that are taken at
    random; for all if these are as many.  *total gets how many there are. */
apr_status_t mdl_storage_sample(mdl_db_t *db, mdl_storage_verify_t *verify, apr_int64_t *total,
                                apr_pool_t *p);

#endif
