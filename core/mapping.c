#include "core/mapping.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/crypto.h"
#include "base/json.h"
#include "core/asset.h"

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One value for a set, whatever its order. */
static const char *hash_of(const apr_array_header_t *variants, apr_pool_t *p)
{
    apr_array_header_t *sorted = apr_array_copy(p, variants);
    unsigned char digest[MDL_SHA256_LENGTH];
    const char *joined;

    if (variants->nelts == 0) {
        return "";
    }
    qsort(sorted->elts, (size_t)sorted->nelts, sizeof(char *), compare);
    joined = apr_array_pstrcat(p, sorted, ',');
    mdl_sha256(joined, strlen(joined), digest);
    return mdl_base64url(digest, sizeof digest, p);
}

static void unknown_id(mdl_mapping_put_t *put, const char *name, int index, apr_pool_t *p)
{
    mdl_refusal_detail(put->refusal, apr_psprintf(p, "/%s/%d", name, index), "unknown_reference",
                       "There is no such id in this shop.", p);
}

/* A shop has no packs, links and license keys yet, so that every id in such a list is unknown. */
static int all_unknown(mdl_mapping_put_t *put, const char *name, const apr_array_header_t *ids,
                       apr_pool_t *p)
{
    int count = ids != NULL ? ids->nelts : 0;

    for (int i = 0; i < count; i++) {
        unknown_id(put, name, i, p);
    }
    return count;
}

static apr_status_t check_references(mdl_db_t *db, mdl_mapping_put_t *put, apr_pool_t *p)
{
    const mdl_mapping_t *mapping = &put->mapping;
    apr_array_header_t *files;
    int unknown;
    apr_status_t rv = mdl_asset_unknown(db, put->shop_id, mapping->file_ids, &files, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < files->nelts; i++) {
        unknown_id(put, "file_ids", APR_ARRAY_IDX(files, i, int), p);
    }
    unknown = files->nelts + all_unknown(put, "pack_ids", mapping->pack_ids, p) +
              all_unknown(put, "link_ids", mapping->link_ids, p) +
              all_unknown(put, "license_key_tag_ids", mapping->license_key_tag_ids, p);
    return unknown == 0 ? APR_SUCCESS
                        : mdl_refuse(put->refusal, 422, "unknown_reference",
                                     "The mapping names content that this shop does not have.");
}

static apr_status_t put_lists(mdl_db_t *db, const mdl_mapping_t *mapping, apr_pool_t *p)
{
    mdl_json_t *files = mdl_json_array(p);
    mdl_json_t *variants = mdl_json_array(p);
    apr_status_t rv;

    for (int i = 0; i < mapping->file_ids->nelts; i++) {
        mdl_json_add_int(files, NULL, APR_ARRAY_IDX(mapping->file_ids, i, apr_int64_t));
    }
    for (int i = 0; i < mapping->storefront_variant_ids->nelts; i++) {
        mdl_json_add_string(variants, NULL,
                            APR_ARRAY_IDX(mapping->storefront_variant_ids, i, const char *));
    }
    rv = mdl_db_exec(db, MDL_Q_MAPPING_FILES_DELETE, NULL, p, MDL_ARGS(mdl_int(mapping->id)));
    if (rv == APR_SUCCESS && mapping->file_ids->nelts > 0) {
        rv = mdl_db_exec(db, MDL_Q_MAPPING_FILES_INSERT, NULL, p,
                         MDL_ARGS(mdl_int(mapping->id), mdl_text(mdl_json_text(files, NULL, p))));
    }
    if (rv == APR_SUCCESS && mapping->storefront_variant_ids->nelts > 0) {
        rv = mdl_db_exec(
            db, MDL_Q_MAPPING_VARIANTS_INSERT, NULL, p,
            MDL_ARGS(mdl_int(mapping->id), mdl_text(mdl_json_text(variants, NULL, p))));
    }
    return rv;
}

static mdl_arg_t number_or_null(int value)
{
    return value < 0 ? mdl_null() : mdl_int(value);
}

apr_status_t mdl_mapping_put(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_mapping_put_t *put = arg;
    mdl_mapping_t *mapping = &put->mapping;
    apr_time_t now = apr_time_now();
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = check_references(db, put, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_select_one(db, MDL_Q_MAPPING_UPSERT, &row, p,
                           MDL_ARGS(mdl_int(put->shop_id), mdl_text(mapping->storefront_product_id),
                                    mdl_text(hash_of(mapping->storefront_variant_ids, p)),
                                    mdl_text(mapping->download_type), mdl_int(mapping->is_active),
                                    number_or_null(mapping->download_limit),
                                    number_or_null(mapping->access_days),
                                    mdl_text(mapping->content), mdl_int(now), mdl_int(now)));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    mapping->id = mdl_rows_int(row, 0);
    mapping->created_at = mdl_rows_int(row, 1);
    mapping->updated_at = mdl_rows_int(row, 2);
    put->created = mapping->created_at == now;
    return put_lists(db, mapping, p);
}

apr_status_t mdl_mapping_match(mdl_db_t *db, apr_int64_t shop_id, const char *product_id,
                               const char *variant_id, mdl_mapping_match_t *match, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(db, MDL_Q_MAPPING_FOR_ITEM, &row, p,
                           MDL_ARGS(mdl_text(variant_id), mdl_int(shop_id), mdl_text(product_id)));
    if (rv == APR_SUCCESS) {
        match->id = mdl_rows_int(row, 0);
        match->content = mdl_rows_text(row, 1);
        match->access_days = mdl_rows_null(row, 2) ? -1 : (int)mdl_rows_int(row, 2);
    }
    return rv;
}
