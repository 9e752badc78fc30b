/*
 * An asset: a file of a shop.
 */
#ifndef MDL_CORE_ASSET_H
#define MDL_CORE_ASSET_H

#include <apr_tables.h>

#include "db/db.h"
#include "storage/storage.h"

typedef struct {
    apr_int64_t id;
    const char *status; /* "pending", "ready", "failed" */
    const char *filename;
    const char *title;
    const char *content_type; /* NULL: what the source will say */
    const char *sha256;       /* NULL until ready */
    apr_int64_t size;
    const char *source_url;
    int version;
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_asset_t;

/** Inserts a pending asset: source_url, filename, title and content_type are given, the rest is
    set. */
apr_status_t mdl_asset_insert(mdl_db_t *db, apr_int64_t shop_id, mdl_asset_t *asset, apr_pool_t *p);

/** Makes an asset ready with its blob; content_type counts where the asset has none. */
apr_status_t mdl_asset_ready(mdl_db_t *db, apr_int64_t id, const mdl_blob_t *blob,
                             const char *content_type, apr_pool_t *p);

/** Marks a pending asset failed. */
apr_status_t mdl_asset_failed(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/** Marks a failed asset pending again. */
apr_status_t mdl_asset_retry(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/**
 * Finds which of ids (apr_int64_t) are not assets of the shop; *unknown gets their positions
 * (int).
 */
apr_status_t mdl_asset_unknown(mdl_db_t *db, apr_int64_t shop_id, const apr_array_header_t *ids,
                               apr_array_header_t **unknown, apr_pool_t *p);

#endif
