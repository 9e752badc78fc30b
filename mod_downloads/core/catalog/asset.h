/*
 * An asset: a file of a shop, which gets new bytes with each version.  The bytes before are kept
 * for a while, to be put back.  A deleted asset keeps its row, because other rows refer to it, but
 * no function here finds it.
 */
#ifndef MDL_CORE_CATALOG_ASSET_H
#define MDL_CORE_CATALOG_ASSET_H

#include <apr_tables.h>

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"
#include "storage/storage.h"

typedef enum {
    MDL_ASSET_PENDING, /* waits for its first bytes */
    MDL_ASSET_READY,
    MDL_ASSET_FAILED /* they could not be had */
} mdl_asset_status_t;
extern const char *const mdl_asset_status_names[];

typedef struct {
    apr_int64_t id;
    mdl_asset_status_t status;
    const char *filename;
    const char *title;
    int filename_guessed;     /* of mdl_asset_insert: the name that the source gives replaces it */
    int title_guessed;        /* likewise, together with filename */
    const char *content_type; /* NULL: the one that the source gives */
    const char *sha256;       /* NULL until ready */
    apr_int64_t size;
    const char *source_url; /* by mdl_source_shown; NULL: it was uploaded */
    int version;
    const char *note;        /* for its buyers: what this version changes; or NULL */
    apr_int64_t category_id; /* 0 for none */
    int former_version;      /* the last one with other bytes; 0: they are not kept */
    const char *former_sha256;
    apr_int64_t former_size;
    const char *former_note;
    apr_time_t former_until; /* until when they are kept */
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_asset_t;

/** What is said of a new version of an asset. */
typedef struct {
    const char *note; /* lines for its buyers: what it changes; or NULL */
    int notify;       /* whether they are told by email */
} mdl_asset_news_t;

#define MDL_FILENAME_MAX      255  /* bytes */
#define MDL_ASSET_NOTE_MAX    1000 /* characters */
#define MDL_ASSET_FORMER_KEPT (apr_time_from_sec(86400) * 30)

/** Whether a name is a valid filename without a path, of at most MDL_FILENAME_MAX bytes: customers'
    browsers save files under it. */
int mdl_asset_filename_valid(const char *name);

/** Inserts a pending asset with the given source_url, filename, title, content_type and
    category_id, and sets its other members.  Refused: 422 unknown_reference when the shop has no
    such category. */
apr_status_t mdl_asset_insert(mdl_db_t *db, apr_int64_t shop_id, mdl_asset_t *asset,
                              mdl_problem_t *problem, apr_pool_t *p);

/** Reads an asset of the shop.  Refused: 404 asset_not_found. */
apr_status_t mdl_asset_find(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, mdl_asset_t **asset,
                            mdl_problem_t *problem, apr_pool_t *p);

/** Reads those of the assets with these ids (apr_int64_t) that the shop has, in the order of the
    ids: mdl_asset_t *. */
apr_status_t mdl_asset_find_all(mdl_db_t *db, apr_int64_t shop_id, const apr_array_header_t *ids,
                                apr_array_header_t **assets, apr_pool_t *p);

/** Reads an asset as mdl_asset_find does, and locks it until the end of the transaction: nobody
   else can change it or add a reference to it. */
apr_status_t mdl_asset_lock(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, mdl_asset_t **asset,
                            mdl_problem_t *problem, apr_pool_t *p);

/** Effect: reads a page of mdl_asset_t. */
typedef struct {
    mdl_list_page_t page;
    const char *status; /* this and the next three are filters, NULL or 0: none */
    apr_int64_t category_id;
    const char *filename;
    const char *sha256;
    const char *prefix; /* of filename, instead of it and sha256: orders by filename, ignores
                           before, and looks at 1,000 files at most; or NULL */
} mdl_asset_list_t;
apr_status_t mdl_asset_list(mdl_db_t *db, apr_pool_t *p, mdl_asset_list_t *list);

/** Effect on an mdl_entity_ref_t: reads an mdl_asset_t.  Refused: 404 asset_not_found. */
apr_status_t mdl_asset_get(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect: changes the given members.  Refused: 404 asset_not_found, 422 unknown_reference. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_asset_t */
    const char *filename; /* NULL: unchanged, like title */
    const char *title;
    int set_content_type; /* also to NULL */
    const char *content_type;
    int set_category; /* also to 0, none */
    apr_int64_t category_id;
} mdl_asset_change_t;
apr_status_t mdl_asset_change(mdl_db_t *db, apr_pool_t *p, mdl_asset_change_t *change);

/** Effect on an mdl_entity_ref_t: deletes an asset and cancels its open job.  Refused: 404
    asset_not_found, 409 asset_in_use with a detail for each mapping, pack and order that has it. */
apr_status_t mdl_asset_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** New bytes for an asset. */
typedef struct {
    mdl_blob_t blob;
    const char *content_type; /* used if the asset has none; or NULL */
    const char *filename;     /* from the source, used if the asset's is guessed; or NULL */
    const char *source_url;   /* their source; NULL: they were uploaded */
    const char *job_id;       /* the job that brought them; NULL: a request */
    apr_int64_t quota;        /* of the shop's storage; 0: none */
    mdl_rows_t *asked;        /* from mdl_asset_ask with the same job; NULL: mdl_asset_ready asks */
    mdl_rows_t *held;         /* out: from mdl_blob_store, for mdl_blob_check */
} mdl_asset_bytes_t;

/** Asks for what mdl_asset_ready needs, and locks the asset.  So the caller can ask for many assets
    before it reads the first answer. */
apr_status_t mdl_asset_ask(mdl_db_t *db, apr_int64_t id, const char *job_id, mdl_rows_t **asked,
                           apr_pool_t *p);

/**
 * Makes an asset ready with new bytes, which are its next version unless they are its first, and
 * updates how much the shop stores.  Other bytes that it had become its former version, unless the
 * quota has no room for both.  Changes nothing and returns APR_EMISMATCH when the source sent
 * an HTML page instead of the file, by its content_type and filename; APR_ENOSPC when the quota
 * does not allow it; APR_ENOENT when the asset was deleted in the meantime.
 */
apr_status_t mdl_asset_ready(mdl_db_t *db, apr_int64_t id, mdl_asset_bytes_t *bytes, apr_pool_t *p);

/** Effect: the former version of an asset (ref.entity) becomes its next, and the present one its
    former.  Refused: 404 version_not_found, 409 version_current, version_not_kept, 422
    storage_quota_exceeded, and like mdl_asset_await_bytes. */
typedef struct {
    mdl_entity_ref_t ref;
    apr_int64_t version;
    apr_int64_t quota; /* of the shop; 0: none */
} mdl_asset_restore_t;
apr_status_t mdl_asset_restore(mdl_db_t *db, apr_pool_t *p, mdl_asset_restore_t *restore);

/** Effect: reads the ids (apr_int64_t) of some assets whose former versions are no longer kept. */
typedef struct {
    apr_time_t now;
    int limit;
    apr_array_header_t *found; /* out */
} mdl_asset_to_forget_t;
apr_status_t mdl_asset_to_forget(mdl_db_t *db, apr_pool_t *p, mdl_asset_to_forget_t *find);

/** Effect: forgets the former version of an asset, if it is no longer kept. */
typedef struct {
    apr_int64_t id;
    apr_time_t now;
} mdl_asset_forget_t;
apr_status_t mdl_asset_forget(mdl_db_t *db, apr_pool_t *p, mdl_asset_forget_t *forget);

/** Reads how many bytes a new version of an asset may have; *room is -1 when there is no quota. */
apr_status_t mdl_asset_room(mdl_db_t *db, apr_int64_t id, apr_int64_t quota, apr_int64_t *room,
                            apr_pool_t *p);

/** Marks a pending asset failed. */
apr_status_t mdl_asset_failed(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/** Marks a failed asset pending again. */
apr_status_t mdl_asset_retry(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/** Locks an asset (ref->entity) for new bytes; a failed asset becomes pending again.  Refused: 404
    asset_not_found, 412 precondition_failed, 409 asset_not_ready when it waits for bytes. */
apr_status_t mdl_asset_await_bytes(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p);

/** The same for a new version, of which news is said as soon as it is there. */
apr_status_t mdl_asset_await_version(mdl_db_t *db, mdl_entity_ref_t *ref,
                                     const mdl_asset_news_t *news, apr_pool_t *p);

#endif
