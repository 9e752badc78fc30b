/*
 * A direct upload: a client writes a file's bytes to an address of its own, at once or in pieces,
 * and then makes an asset of it.  Its bytes are a partial file (storage) of the upload's id.
 */
#ifndef MDL_CORE_CATALOG_UPLOAD_H
#define MDL_CORE_CATALOG_UPLOAD_H

#include "core/catalog/asset.h"
#include "core/job.h"
#include "core/problem.h"
#include "db/db.h"
#include "storage/storage.h"

typedef enum {
    MDL_UPLOAD_OPEN,
    MDL_UPLOAD_COMPLETED, /* it is an asset, or new bytes of one */
    MDL_UPLOAD_ABORTED
} mdl_upload_status_t;
extern const char *const mdl_upload_status_names[];

typedef struct {
    const char *id;
    apr_int64_t shop_id;
    mdl_upload_status_t status;
    const char *filename;
    const char *title;
    const char *content_type;    /* NULL for none */
    apr_int64_t category_id;     /* 0 for none */
    apr_int64_t size;            /* as announced, or as it came; -1: not known yet */
    const char *expected_sha256; /* as announced; NULL */
    const char *sha256;          /* of all bytes once they came in one piece; NULL */
    apr_int64_t asset_id;        /* that it became; 0 */
    apr_time_t created_at;
    apr_time_t expires_at;
    apr_time_t updated_at; /* moves with whatever of it changes but the bytes that have come */
    apr_int64_t reserved;  /* of unknown size: bytes that count against the quota so far */
    int expired;           /* by the database's clock, without having been completed */
    int shop_blocked;      /* as mdl_upload_find reads it */
} mdl_upload_t;

/** Effect: begins an upload.  Refused: 422 unknown_reference, 422 too_many_uploads with each open
    one, 422 storage_quota_exceeded. */
typedef struct {
    apr_interval_time_t lifetime;
    int max_open;        /* uploads of the shop */
    apr_int64_t quota;   /* of the shop's storage; 0: none */
    mdl_upload_t upload; /* in: shop_id, filename, title, content_type, category_id, size,
                            expected_sha256; out: all */
    mdl_problem_t *problem;
} mdl_upload_begin_t;
apr_status_t mdl_upload_begin(mdl_db_t *db, apr_pool_t *p, mdl_upload_begin_t *begin);

/** An upload of any shop, in whatever state; APR_ENOENT. */
apr_status_t mdl_upload_find(mdl_db_t *db, const char *id, mdl_upload_t **upload, apr_pool_t *p);

/** How many bytes have arrived, in *offset: 0 of one that was aborted. */
apr_status_t mdl_upload_offset(mdl_storage_t *storage, const mdl_upload_t *upload,
                               apr_int64_t *offset, apr_pool_t *p);

/** Effect that reads an upload as its shop may see it.  Refused: 404 upload_not_found, also when it
    expired. */
typedef struct {
    const char *id;
    apr_int64_t shop_id;
    const apr_array_header_t *versions; /* of mdl_upload_abort: as in mdl_entity_ref_t */
    mdl_storage_t *storage;
    mdl_upload_t *upload; /* out */
    apr_int64_t offset;   /* out */
    mdl_problem_t *problem;
} mdl_upload_get_t;
apr_status_t mdl_upload_get(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get);

/** Effect that reads an upload for whoever has its URL: shop_id and storage are not looked at,
   offset is not set.  Refused: 404 upload_not_found, 410 upload_gone when it expired or was
   aborted, 403 shop_blocked. */
apr_status_t mdl_upload_find_live(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get);

/** Sets the problem 403 shop_blocked. */
apr_status_t mdl_upload_blocked(mdl_problem_t *problem);

/** Effect: aborts an upload; its bytes are swept.  Refused: 404 upload_not_found, 409
    upload_finished. */
apr_status_t mdl_upload_abort(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get);

/** Effect: reserves room in the quota for an upload of unknown size: most bytes in all or, if the
    quota does not leave that, what it leaves.  With quota 0 any most, also to give back.  Refused:
    422 storage_quota_exceeded.  APR_ENOENT when the upload is over or has a size. */
typedef struct {
    const char *id;
    apr_int64_t shop_id;
    apr_int64_t quota;
    apr_int64_t least; /* bytes in all that are needed; less is refused */
    apr_int64_t most;
    apr_int64_t reserved; /* out */
    mdl_problem_t *problem;
} mdl_upload_reserve_t;
apr_status_t mdl_upload_reserve(mdl_db_t *db, apr_pool_t *p, mdl_upload_reserve_t *reserve);

/** Effect: notes the size of an upload that began without.  Refused: 422 storage_quota_exceeded.
    APR_ENOENT when it is over or has one already. */
typedef struct {
    const char *id;
    apr_int64_t shop_id;
    apr_int64_t quota; /* 0: none */
    apr_int64_t size;
    mdl_problem_t *problem;
} mdl_upload_size_t;
apr_status_t mdl_upload_set_size(mdl_db_t *db, apr_pool_t *p, const mdl_upload_size_t *set);

/** Effect: notes that all bytes have come and are a blob.  APR_EINCOMPLETE as mdl_blob_check. */
typedef struct {
    const char *id;
    const mdl_storage_t *storage;
    mdl_blob_t blob;
    int late; /* out: the upload is over, or of another size; the blob is left to the sweep */
} mdl_upload_finish_t;
apr_status_t mdl_upload_finish(mdl_db_t *db, apr_pool_t *p, mdl_upload_finish_t *finish);

/**
 * Effect: makes an asset of an upload, or new bytes for one.  The asset is ready where all bytes
 * came in one piece; else a job hashes them first.  Refused: 404 upload_not_found, 409
 * upload_incomplete, 409 upload_finished, 412 precondition_failed, 422 checksum_mismatch, 422
 * storage_quota_exceeded, and as mdl_asset_insert and mdl_asset_await_bytes are.
 */
typedef struct {
    const char *id;
    apr_int64_t shop_id;
    apr_int64_t asset_id;               /* that gets the bytes; 0: a new one */
    const apr_array_header_t *versions; /* of that asset, or of the upload that becomes one */
    mdl_storage_t *storage;
    apr_int64_t quota; /* of the shop's storage; 0: none */
    int max_attempts;
    apr_int64_t synced; /* bytes, by mdl_upload_sync */
    int repeated;       /* out: the upload had been completed before, into the asset */
    mdl_asset_t *asset; /* out */
    mdl_job_t *job;     /* out: NULL when there is nothing left to do */
    mdl_problem_t *problem;
} mdl_upload_complete_t;
apr_status_t mdl_upload_complete(mdl_db_t *db, apr_pool_t *p, mdl_upload_complete_t *complete);

/** To be called before that effect: makes the bytes that have arrived last a power cut.  No others
    count. */
apr_status_t mdl_upload_sync(mdl_upload_complete_t *complete, apr_pool_t *p);

/** Effect: aborts up to limit open uploads that have expired. */
typedef struct {
    int limit;
    apr_int64_t aborted; /* out */
} mdl_upload_expire_t;
apr_status_t mdl_upload_expire(mdl_db_t *db, apr_pool_t *p, mdl_upload_expire_t *expire);

/** Effect that reads which of these partial files (ids, const char *) belong to nothing any more.
 */
typedef struct {
    const apr_array_header_t *ids;
    apr_array_header_t *over; /* out: const char * */
} mdl_upload_over_t;
apr_status_t mdl_upload_over(mdl_db_t *db, apr_pool_t *p, mdl_upload_over_t *over);

#endif
