/*
 * Where an asset is used: the products and packs that have it, and the orders that get it.  The
 * products that have a pack or a link.
 */
#ifndef MDL_CORE_CATALOG_ASSET_USE_H
#define MDL_CORE_CATALOG_ASSET_USE_H

#include "core/catalog/asset.h"
#include "core/job.h"

#define MDL_ASSET_USES_MAX   100  /* mappings and packs that are counted or listed */
#define MDL_ASSET_ORDERS_MAX 1000 /* orders that are counted */

/** How many mappings and packs have an asset, each up to MDL_ASSET_USES_MAX. */
typedef struct {
    apr_int64_t id;
    int mappings;
    int packs;
} mdl_asset_count_t;

/** Counts the uses of assets (mdl_asset_t *); counts gets an mdl_asset_count_t for each, in any
    order. */
apr_status_t mdl_asset_count_uses(mdl_db_t *db, const apr_array_header_t *assets,
                                  apr_array_header_t **counts, apr_pool_t *p);

/** A mapping or a pack. */
typedef struct {
    apr_int64_t id;
    const char *name;                  /* of the pack; of the mapping its title, or NULL */
    const char *storefront_product_id; /* of the mapping; NULL: a pack */
} mdl_asset_user_t;

/** Effect: reads an asset with its uses.  Refused: 404 asset_not_found. */
typedef struct {
    mdl_entity_ref_t ref;         /* entity: mdl_asset_t */
    apr_array_header_t *mappings; /* out: mdl_asset_user_t * */
    apr_array_header_t *packs;    /* out: mdl_asset_user_t * */
    apr_array_header_t *orders;   /* out: their storefront_order_id, at most MDL_ASSET_ORDERS_MAX */
    mdl_job_t *job;               /* out: the newest that brings or brought bytes; NULL: none */
} mdl_asset_use_t;
apr_status_t mdl_asset_use_read(mdl_db_t *db, apr_pool_t *p, mdl_asset_use_t *use);

/** Reads the mappings that have a pack or a link: mdl_asset_user_t *, at most MDL_ASSET_USES_MAX.
 */
apr_status_t mdl_products_of_pack(mdl_db_t *db, apr_int64_t id, apr_array_header_t **mappings,
                                  apr_pool_t *p);
apr_status_t mdl_products_of_link(mdl_db_t *db, apr_int64_t id, apr_array_header_t **mappings,
                                  apr_pool_t *p);

#endif
