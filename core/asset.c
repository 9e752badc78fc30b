#include "core/asset.h"

#include <apr_hash.h>
#include <apr_time.h>

#include "base/json.h"

apr_status_t mdl_asset_insert(mdl_db_t *db, apr_int64_t shop_id, mdl_asset_t *asset, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    asset->status = "pending";
    asset->version = 1;
    asset->created_at = asset->updated_at = apr_time_now();
    rv = mdl_db_select_one(db, MDL_Q_ASSET_INSERT, &row, p,
                           MDL_ARGS(mdl_int(shop_id), mdl_text(asset->filename),
                                    mdl_text(asset->title), mdl_text(asset->content_type),
                                    mdl_text(asset->source_url), mdl_int(asset->created_at),
                                    mdl_int(asset->updated_at)));
    if (rv == APR_SUCCESS) {
        asset->id = mdl_rows_int(row, 0);
    }
    return rv;
}

apr_status_t mdl_asset_ready(mdl_db_t *db, apr_int64_t id, const mdl_blob_t *blob,
                             const char *content_type, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    apr_status_t rv;

    rv = mdl_db_exec(db, MDL_Q_BLOB_INSERT, NULL, p,
                     MDL_ARGS(mdl_text(blob->sha256), mdl_int(blob->size),
                              mdl_int((apr_int64_t)blob->crc32), mdl_int(now)));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(
        db, MDL_Q_ASSET_READY, NULL, p,
        MDL_ARGS(mdl_text(blob->sha256), mdl_text(content_type), mdl_int(now), mdl_int(id)));
}

apr_status_t mdl_asset_failed(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_ASSET_FAILED, NULL, p,
                       MDL_ARGS(mdl_int(apr_time_now()), mdl_int(id)));
}

apr_status_t mdl_asset_retry(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_ASSET_RETRY, NULL, p,
                       MDL_ARGS(mdl_int(apr_time_now()), mdl_int(id)));
}

apr_status_t mdl_asset_unknown(mdl_db_t *db, apr_int64_t shop_id, const apr_array_header_t *ids,
                               apr_array_header_t **unknown, apr_pool_t *p)
{
    apr_hash_t *known = apr_hash_make(p);
    mdl_json_t *array = mdl_json_array(p);
    mdl_rows_t *rows;
    apr_status_t rv;

    *unknown = apr_array_make(p, 4, sizeof(int));
    if (ids->nelts == 0) {
        return APR_SUCCESS;
    }
    for (int i = 0; i < ids->nelts; i++) {
        mdl_json_add_int(array, NULL, APR_ARRAY_IDX(ids, i, apr_int64_t));
    }
    rv = mdl_db_select(db, MDL_Q_ASSET_KNOWN, &rows, p,
                       MDL_ARGS(mdl_int(shop_id), mdl_text(mdl_json_text(array, NULL, p))));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    while (mdl_rows_next(rows)) {
        apr_int64_t *id = apr_palloc(p, sizeof *id);

        *id = mdl_rows_int(rows, 0);
        apr_hash_set(known, id, sizeof *id, id);
    }
    for (int i = 0; i < ids->nelts; i++) {
        if (apr_hash_get(known, &APR_ARRAY_IDX(ids, i, apr_int64_t), sizeof(apr_int64_t)) == NULL) {
            APR_ARRAY_PUSH(*unknown, int) = i;
        }
    }
    return APR_SUCCESS;
}
