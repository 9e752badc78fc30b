/*
 * An asset: a file of a shop, its bytes in one version after the other.  A deleted asset keeps
 * its row, since others refer to it, but no function here finds it.
 */
#ifndef MDL_CORE_CATALOG_ASSET_H
#define MDL_CORE_CATALOG_ASSET_H

#include <apr_tables.h>

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"
#include "storage/storage.h"

typedef enum {
    MDL_ASSET_PENDING, /* its first bytes are on their way */
    MDL_ASSET_READY,
    MDL_ASSET_FAILED /* they did not come */
} mdl_asset_status_t;
extern const char *const mdl_asset_status_names[];

typedef struct {
    apr_int64_t id;
    mdl_asset_status_t status;
    const char *filename;
    const char *title;
    int filename_guessed;     /* in, when inserted: the source's own name replaces it */
    int title_guessed;        /* likewise, where that of the filename is */
    const char *content_type; /* NULL: what the source will say */
    const char *sha256;       /* NULL until ready */
    apr_int64_t size;
    const char *source_url; /* as mdl_source_shown; NULL: it was uploaded */
    int version;
    apr_int64_t category_id; /* 0 for none */
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_asset_t;

/** Whether a name is that of a file and leads out of no folder, for a customer's browser will save
    it as that: at most 255 bytes, and no path. */
int mdl_asset_filename_valid(const char *name);

/** Inserts a pending asset: source_url, filename, title, content_type and category_id are given,
   the rest is set.  Refused with 422 unknown_reference when the category is not the shop's. */
apr_status_t mdl_asset_insert(mdl_db_t *db, apr_int64_t shop_id, mdl_asset_t *asset,
                              mdl_problem_t *problem, apr_pool_t *p);

/** An asset of the shop; refused with 404 asset_not_found. */
apr_status_t mdl_asset_find(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, mdl_asset_t **asset,
                            mdl_problem_t *problem, apr_pool_t *p);

/** The same, and locked for a change: nobody else changes it or begins to refer to it before the
    transaction's end. */
apr_status_t mdl_asset_lock(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, mdl_asset_t **asset,
                            mdl_problem_t *problem, apr_pool_t *p);

/** Effect that reads a page of mdl_asset_t. */
typedef struct {
    mdl_list_page_t page;
    const char *status; /* filters: NULL, or 0, for none; this one is a name */
    apr_int64_t category_id;
    const char *filename;
    const char *sha256;
} mdl_asset_list_t;
apr_status_t mdl_asset_list(mdl_db_t *db, apr_pool_t *p, mdl_asset_list_t *list);

/** Effect on an mdl_entity_ref_t: reads an mdl_asset_t.  Refused: 404 asset_not_found. */
apr_status_t mdl_asset_get(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect: changes what is set here.  Refused: 404 asset_not_found, 422 unknown_reference. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_asset_t */
    const char *filename; /* NULL: as it is, as title */
    const char *title;
    int set_content_type; /* also to NULL */
    const char *content_type;
    int set_category; /* also to 0, none */
    apr_int64_t category_id;
} mdl_asset_change_t;
apr_status_t mdl_asset_change(mdl_db_t *db, apr_pool_t *p, mdl_asset_change_t *change);

/** Effect on an mdl_entity_ref_t: deletes an asset and cancels its open job.  Refused: 404
    asset_not_found, 409 asset_in_use with a detail for each mapping, pack and order that holds it.
 */
apr_status_t mdl_asset_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Bytes for an asset. */
typedef struct {
    mdl_blob_t blob;
    const char *content_type; /* counts where the asset has none; NULL */
    const char *filename;     /* that the source said, which counts where that is guessed; NULL */
    const char *source_url;   /* that they came from; NULL: they were uploaded */
    const char *job_id;       /* that brought them; NULL: the request itself */
    apr_int64_t quota;        /* of the shop's storage; 0: none */
    mdl_rows_t *asked;        /* by mdl_asset_ask, with the same job; NULL: mdl_asset_ready asks */
    mdl_rows_t *held;         /* out: of mdl_blob_store, for mdl_blob_check */
} mdl_asset_bytes_t;

/** Asks for what mdl_asset_ready has to know, so that it can be asked for many assets at once;
   locks the asset. */
apr_status_t mdl_asset_ask(mdl_db_t *db, apr_int64_t id, const char *job_id, mdl_rows_t **asked,
                           apr_pool_t *p);

/**
 * Makes an asset ready with its bytes; they are another version unless they are its first.  The sum
 * that the shop stores follows.  APR_EMISMATCH when a source sent a page of HTML in place of a file
 * of another kind, by its content_type and filename; APR_ENOSPC when the quota does not allow it,
 * APR_ENOENT when the asset was deleted meanwhile: then nothing is changed.
 */
apr_status_t mdl_asset_ready(mdl_db_t *db, apr_int64_t id, mdl_asset_bytes_t *bytes, apr_pool_t *p);

/** Reads how large new bytes of an asset may be; *room is -1 when there is no quota. */
apr_status_t mdl_asset_room(mdl_db_t *db, apr_int64_t id, apr_int64_t quota, apr_int64_t *room,
                            apr_pool_t *p);

/** Marks a pending asset failed. */
apr_status_t mdl_asset_failed(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/** Marks a failed asset pending again. */
apr_status_t mdl_asset_retry(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/** Locks an asset (ref->entity) that is to get new bytes; one that failed is pending again.
    Refused: 404 asset_not_found, 412 precondition_failed, 409 asset_not_ready when it is waiting
    for bytes already. */
apr_status_t mdl_asset_await_bytes(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p);

#endif
