#include "core/catalog/asset_use.h"

#include <apr_hash.h>

apr_status_t mdl_asset_count_uses(mdl_db_t *db, const apr_array_header_t *assets,
                                  apr_array_header_t **counts, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, assets->nelts, sizeof(apr_int64_t));
    mdl_rows_t *rows;
    apr_status_t rv;

    *counts = apr_array_make(p, assets->nelts, sizeof(mdl_asset_count_t));
    if (assets->nelts == 0) {
        return APR_SUCCESS;
    }
    for (int i = 0; i < assets->nelts; i++) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = APR_ARRAY_IDX(assets, i, const mdl_asset_t *)->id;
    }
    rv = mdl_db_select(db, &rows, p, MDL_Q(ASSET_USES, .limit = MDL_ASSET_USES_MAX, .ids = ids));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_asset_count_t *count = apr_array_push(*counts);

        MDL_READ(rows, asset_uses, count, id, mappings, packs);
    }
    return rv;
}

static apr_status_t use_read_users(mdl_db_t *db, apr_int64_t id, mdl_statement_t statement,
                                   apr_array_header_t **users, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q_AS(statement, ASSET_MAPPINGS, .id = id, .limit = MDL_ASSET_USES_MAX));

    *users = apr_array_make(p, 4, sizeof(mdl_asset_user_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_asset_user_t *user = apr_palloc(p, sizeof *user);

        *user = (mdl_asset_user_t){mdl_rows_int(rows, 0), mdl_rows_text(rows, 1),
                                   mdl_rows_text(rows, 2)};
        APR_ARRAY_PUSH(*users, mdl_asset_user_t *) = user;
    }
    return rv;
}

/* Adds the orders that are not in seen yet. */
static apr_status_t use_add_orders(mdl_db_t *db, mdl_asset_use_t *use, mdl_statement_t statement,
                                   apr_hash_t *seen, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q_AS(statement, ASSET_FILE_ORDERS, .id = use->ref.id, .limit = MDL_ASSET_ORDERS_MAX));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *order = mdl_rows_text(rows, 0);

        if (use->orders->nelts < MDL_ASSET_ORDERS_MAX &&
            apr_hash_get(seen, order, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(seen, order, APR_HASH_KEY_STRING, order);
            APR_ARRAY_PUSH(use->orders, const char *) = order;
        }
    }
    return rv;
}

static apr_status_t use_read_orders(mdl_db_t *db, mdl_asset_use_t *use, apr_pool_t *p)
{
    static const mdl_statement_t statements[] = {MDL_Q_ASSET_FILE_ORDERS, MDL_Q_ASSET_PACK_ORDERS,
                                                 MDL_Q_ASSET_PINNED_ORDERS};
    apr_hash_t *seen = apr_hash_make(p);
    apr_status_t rv = APR_SUCCESS;

    use->orders = apr_array_make(p, 16, sizeof(const char *));
    for (apr_size_t i = 0; rv == APR_SUCCESS && i < sizeof statements / sizeof *statements; i++) {
        rv = use_add_orders(db, use, statements[i], seen, p);
    }
    return rv;
}

apr_status_t mdl_asset_use_read(mdl_db_t *db, apr_pool_t *p, mdl_asset_use_t *use)
{
    mdl_job_page_t jobs = {
        .page = {.shop_id = use->ref.shop_id, .before_text = MDL_LIST_NEWEST, .limit = 1},
        .asset_id = use->ref.id};
    apr_status_t rv;

    if ((rv = mdl_asset_get(db, p, &use->ref)) != APR_SUCCESS ||
        (rv = use_read_users(db, use->ref.id, MDL_Q_ASSET_MAPPINGS, &use->mappings, p)) !=
            APR_SUCCESS ||
        (rv = use_read_users(db, use->ref.id, MDL_Q_ASSET_PACKS, &use->packs, p)) != APR_SUCCESS ||
        (rv = use_read_orders(db, use, p)) != APR_SUCCESS ||
        (rv = mdl_job_page(db, p, &jobs)) != APR_SUCCESS) {
        return rv;
    }
    use->job = jobs.page.found->nelts > 0 ? APR_ARRAY_IDX(jobs.page.found, 0, mdl_job_t *) : NULL;
    return APR_SUCCESS;
}

apr_status_t mdl_products_of_pack(mdl_db_t *db, apr_int64_t id, apr_array_header_t **mappings,
                                  apr_pool_t *p)
{
    return use_read_users(db, id, MDL_Q_PACK_MAPPINGS, mappings, p);
}

apr_status_t mdl_products_of_link(mdl_db_t *db, apr_int64_t id, apr_array_header_t **mappings,
                                  apr_pool_t *p)
{
    return use_read_users(db, id, MDL_Q_LINK_MAPPINGS, mappings, p);
}
