/*
 * A direct upload: a client writes a file's bytes to the upload's address, at once or in pieces,
 * and then makes an asset of them.  The bytes become an object if there is a store; else they are a
 * partial file (storage) with the upload's id.
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
    MDL_UPLOAD_COMPLETED, /* it became an asset, or new bytes of one */
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
    apr_int64_t size;            /* as announced or as arrived; -1: not known yet */
    const char *expected_sha256; /* as announced; or NULL */
    const char *sha256;          /* of all bytes, if they came in one write or are an object */
    const char *written;    /* how far its object has come (storage/object_writer.h); or NULL */
    apr_int64_t arrived;    /* the bytes in that */
    const char *write_id;   /* the last write into the object; or NULL */
    apr_int64_t asset_id;   /* the asset that it became; 0: none */
    const char *begun_by;   /* the member who began it in the settings; NULL: an API key */
    const char *returns_to; /* a form brings the file, and returns to the upload's page below this
                               path, which is below DownloadsSettingsURL; or NULL */
    apr_int64_t replaces;   /* with begun_by: the asset that gets the bytes; 0: a new one */
    const char *note;       /* of the version that it becomes; or NULL */
    int notify;             /* whether the buyers are told of that version */
    apr_int64_t modified;   /* the file's own time in a browser, in milliseconds; 0: not told */
    apr_time_t created_at;
    apr_time_t expires_at;
    apr_time_t updated_at; /* moves with every change but arriving bytes */
    apr_int64_t reserved;  /* with unknown size: bytes that count against the quota so far */
    int expired;           /* expired by the database's clock, and not completed */
    int shop_blocked;      /* this and the next are only set by mdl_upload_find */
    int is_written;        /* whether a living process may be writing its object */
} mdl_upload_t;

/** Effect: begins an upload.  Refused: 422 unknown_reference, 422 too_many_uploads with each open
    upload, 422 storage_quota_exceeded. */
typedef struct {
    apr_interval_time_t lifetime;
    int max_open;        /* of the shop */
    apr_int64_t quota;   /* of the shop's storage; 0: none */
    mdl_upload_t upload; /* in: shop_id, filename, title, content_type, category_id, size,
                            expected_sha256, begun_by, returns_to, replaces, note, notify,
                            modified; out: all */
    mdl_problem_t *problem;
} mdl_upload_begin_t;
apr_status_t mdl_upload_begin(mdl_db_t *db, apr_pool_t *p, mdl_upload_begin_t *begin);

/** Reads an upload of any shop, in any state; APR_ENOENT: none. */
apr_status_t mdl_upload_find(mdl_db_t *db, const char *id, mdl_upload_t **upload, apr_pool_t *p);

/** Whether the bytes go into the folder: because there is no object store, or they began there. */
int mdl_upload_is_in_folder(mdl_storage_t *storage, const char *id, apr_pool_t *p);

/** Whether all bytes are in an object that is no blob yet, because they came before a cut, or the
    store or the database failed then.  A write of no bytes finishes it
   (core/catalog/upload_write.h). offset is from mdl_upload_offset. */
int mdl_upload_is_unfinished(mdl_storage_t *storage, const mdl_upload_t *upload, apr_int64_t offset,
                             apr_pool_t *p);

/** *offset gets how many bytes have arrived; 0 if the upload was aborted. */
apr_status_t mdl_upload_offset(mdl_storage_t *storage, const mdl_upload_t *upload,
                               apr_int64_t *offset, apr_pool_t *p);

/** Effect: reads an upload for its shop.  Refused: 404 upload_not_found, also if it has expired. */
typedef struct {
    const char *id;
    apr_int64_t shop_id;
    const apr_array_header_t *versions; /* for mdl_upload_abort: as in mdl_entity_ref_t */
    mdl_storage_t *storage;
    mdl_upload_t *upload; /* out */
    apr_int64_t offset;   /* out */
    mdl_problem_t *problem;
} mdl_upload_get_t;
apr_status_t mdl_upload_get(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get);

/** Effect: reads the open uploads that a shop's members have begun (mdl_upload_t *), oldest first,
    without those that wait for a form. */
typedef struct {
    apr_int64_t shop_id;
    apr_array_header_t *uploads; /* out */
} mdl_upload_begun_t;
apr_status_t mdl_upload_begun(mdl_db_t *db, apr_pool_t *p, mdl_upload_begun_t *begun);

/** Locks an upload, if there is one, until the end of the transaction. */
apr_status_t mdl_upload_lock(mdl_db_t *db, const char *id, apr_pool_t *p);

/** Effect: reads an upload for the holder of its URL.  Uses neither shop_id nor storage, and does
    not set offset.  Refused: 404 upload_not_found, 410 upload_gone when it expired or was aborted,
    403 shop_blocked. */
apr_status_t mdl_upload_find_live(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get);

/** Sets the problem 403 shop_blocked. */
apr_status_t mdl_upload_blocked(mdl_problem_t *problem);

/** Effect: aborts an upload; its bytes are swept.  Refused: 404 upload_not_found; 409
    upload_finished. */
apr_status_t mdl_upload_abort(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get);

/** Effect: reserves quota for an upload of unknown size: most bytes in all or, if the quota has
    less left, what is left.  With quota 0, sets the reservation to most, which may also lower it.
    Refused: 422 storage_quota_exceeded.  APR_ENOENT when the upload is over or has a size. */
typedef struct {
    const char *id;
    apr_int64_t shop_id;
    apr_int64_t quota;
    apr_int64_t least; /* bytes needed in all; less is refused */
    apr_int64_t most;
    apr_int64_t reserved; /* out */
    mdl_problem_t *problem;
} mdl_upload_reserve_t;
apr_status_t mdl_upload_reserve(mdl_db_t *db, apr_pool_t *p, mdl_upload_reserve_t *reserve);

/** Effect: sets the size of an upload of unknown size.  Refused: 422 storage_quota_exceeded.
    APR_ENOENT when it is over or has a size already. */
typedef struct {
    const char *id;
    apr_int64_t shop_id;
    apr_int64_t quota; /* 0: none */
    apr_int64_t size;
    mdl_problem_t *problem;
} mdl_upload_size_t;
apr_status_t mdl_upload_set_size(mdl_db_t *db, apr_pool_t *p, const mdl_upload_size_t *set);

/** Effect: records that all bytes have arrived as a blob.  APR_EINCOMPLETE as in mdl_blob_check. */
typedef struct {
    const char *id;
    const char
        *write_id; /* of the write into an object; NULL: a file of the folder has the bytes */
    const mdl_storage_t *storage;
    mdl_blob_t blob;
    int has_tails; /* whether pieces of the object may be left (mdl_object_writer_tails_key) */
    int late;      /* out: the upload is over, has another size, or is written by another; the blob
                      is left to the sweep */
} mdl_upload_finish_t;
apr_status_t mdl_upload_finish(mdl_db_t *db, apr_pool_t *p, mdl_upload_finish_t *finish);

/** Sets what a form tells of its file, before mdl_upload_complete in its transaction. */
typedef struct {
    const char *filename;
    const char *title;
    const char *content_type; /* or NULL */
} mdl_upload_description_t;
apr_status_t mdl_upload_describe(mdl_db_t *db, const char *id,
                                 const mdl_upload_description_t *description, apr_pool_t *p);

/**
 * Effect: makes an asset of an upload, or new bytes of an asset.  The asset is ready at once if all
 * bytes came in one write; else a job hashes them first.  Refused: 404 upload_not_found, 409
 * upload_incomplete, 409 upload_finished, 412 precondition_failed, 422 checksum_mismatch, 422
 * storage_quota_exceeded, and like mdl_asset_insert and mdl_asset_await_bytes.
 */
typedef struct {
    const char *id;
    apr_int64_t shop_id;
    apr_int64_t asset_id;               /* the asset that gets the bytes; 0: a new one */
    const apr_array_header_t *versions; /* of that asset; of the upload, if asset_id is 0 */
    mdl_asset_news_t news;              /* of a version; a member's upload has its own */
    mdl_storage_t *storage;
    apr_int64_t quota; /* of the shop's storage; 0: none */
    int max_attempts;
    apr_int64_t synced; /* bytes synced by mdl_upload_sync */
    int repeated;       /* out: whether the upload was already completed, as the asset */
    mdl_asset_t *asset; /* out */
    mdl_job_t *job;     /* out: or NULL, if the asset is ready */
    mdl_problem_t *problem;
} mdl_upload_complete_t;
apr_status_t mdl_upload_complete(mdl_db_t *db, apr_pool_t *p, mdl_upload_complete_t *complete);

/** Called before that effect, which counts only synced bytes of a partial file: makes those that
    have arrived survive a power cut. */
apr_status_t mdl_upload_sync(mdl_upload_complete_t *complete, apr_pool_t *p);

/** Effect: aborts up to limit open uploads that have expired. */
typedef struct {
    int limit;
    apr_int64_t aborted; /* out */
} mdl_upload_expire_t;
apr_status_t mdl_upload_expire(mdl_db_t *db, apr_pool_t *p, mdl_upload_expire_t *expire);

/** Effect: reads which of these partial files (ids, const char *) belong to no upload any more. */
typedef struct {
    const apr_array_header_t *ids;
    apr_array_header_t *over; /* out: const char * */
} mdl_upload_over_t;
apr_status_t mdl_upload_over(mdl_db_t *db, apr_pool_t *p, mdl_upload_over_t *over);

#endif
