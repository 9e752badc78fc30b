/*
 * Shops, assets and other fixtures for the tests of core, made by the service's own functions.
 */
#ifndef MDL_T_UNIT_FIXTURES_H
#define MDL_T_UNIT_FIXTURES_H

#include "t/unit/database.h"

#include <fcntl.h>

#include "base/crypto.h"
#include "core/catalog/asset.h"
#include "core/catalog/mapping.h"
#include "core/order/assignment.h"
#include "core/shop/shop.h"
#include "t/unit/effects.h"

#define PRODUCT(n) "gid://shopfront/Product/" n
#define VARIANT(n) "gid://shopfront/ProductVariant/" n

/** Secrets that each repeat one byte 32 times: "ba" is "b"'s, which signs, and "a"'s, an older
    one. */
static inline mdl_secret_t *make_secrets(const char *bytes, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    apr_array_header_t *paths = apr_array_make(p, 2, sizeof(const char *));
    const char *why = "no file";
    mdl_secret_t *secret = NULL;

    for (; *bytes != '\0'; bytes++) {
        char *path = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/mdl-secret.XXXXXX", NULL);
        int file = mkstemp(path);

        if (file < 0 || write(file, memset(apr_palloc(p, 32), *bytes, 32), 32) != 32) {
            printf("Bail out! secret: %s\n", why);
            exit(2);
        }
        close(file);
        APR_ARRAY_PUSH(paths, const char *) = path;
    }
    if (mdl_secret_read(&secret, paths, &why, p) != APR_SUCCESS) {
        printf("Bail out! secret: %s\n", why);
        exit(2);
    }
    for (int i = 0; i < paths->nelts; i++) {
        unlink(APR_ARRAY_IDX(paths, i, const char *));
    }
    return secret;
}

/** A secret that repeats one byte 32 times. */
static inline mdl_secret_t *make_secret(char byte, apr_pool_t *p)
{
    return make_secrets((char[]){byte, '\0'}, p);
}

static inline apr_status_t set_shop_status(mdl_db_t *db, apr_int64_t id, mdl_shop_status_t status,
                                           apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_shop_set_status_t set = {.id = id, .status = status, .problem = &problem};

    return mdl_db_write(db, mdl_shop_set_status_effect, &set, p);
}

/** Makes an approved shop. */
static inline apr_int64_t make_shop(mdl_db_t *db, const char *domain, apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_shop_add_t add = {.shop = {.name = "A shop", .domain = domain}, .problem = &problem};

    if (mdl_db_write(db, mdl_shop_add_effect, &add, p) != APR_SUCCESS ||
        set_shop_status(db, add.shop.id, MDL_SHOP_APPROVED, p) != APR_SUCCESS) {
        printf("Bail out! shop %s: %s\n", domain, mdl_db_error(db));
        exit(2);
    }
    return add.shop.id;
}

typedef struct {
    apr_int64_t shop_id;
    const char *filename;
    int ready;
    mdl_asset_t asset;
} new_asset_t;

static inline apr_status_t insert_asset(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    new_asset_t *new = arg;
    mdl_asset_bytes_t bytes = {.blob = {.size = 4321, .crc32 = 0xfedcba98},
                               .content_type = "application/pdf",
                               .source_url = "https://files.test/x"};
    mdl_problem_t problem = {0};
    unsigned char digest[MDL_SHA256_LENGTH];
    apr_status_t rv;

    new->asset = (mdl_asset_t){
        .filename = new->filename, .title = new->filename, .source_url = "https://files.test/x"};
    rv = mdl_asset_insert(db, new->shop_id, &new->asset, &problem, p);
    if (rv != APR_SUCCESS || !new->ready) {
        return rv;
    }
    mdl_sha256(new->filename, strlen(new->filename), digest);
    bytes.blob.sha256 = mdl_hex(digest, sizeof digest, p);
    return mdl_asset_ready(db, new->asset.id, &bytes, p);
}

/** Makes an asset, ready or pending. */
static inline apr_int64_t make_asset(mdl_db_t *db, apr_int64_t shop_id, const char *filename,
                                     int ready, apr_pool_t *p)
{
    new_asset_t new = {.shop_id = shop_id, .filename = filename, .ready = ready};

    if (mdl_db_write(db, insert_asset, &new, p) != APR_SUCCESS) {
        printf("Bail out! asset %s: %s\n", filename, mdl_db_error(db));
        exit(2);
    }
    return new.asset.id;
}

static inline apr_array_header_t *ids_of(apr_pool_t *p, int n, ...)
{
    apr_array_header_t *ids = apr_array_make(p, 4, sizeof(apr_int64_t));
    va_list args;

    va_start(args, n);
    while (n-- > 0) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = va_arg(args, apr_int64_t);
    }
    va_end(args);
    return ids;
}

static inline apr_array_header_t *texts_of(apr_pool_t *p, int n, ...)
{
    apr_array_header_t *texts = apr_array_make(p, 4, sizeof(const char *));
    va_list args;

    va_start(args, n);
    while (n-- > 0) {
        APR_ARRAY_PUSH(texts, const char *) = va_arg(args, const char *);
    }
    va_end(args);
    return texts;
}

/** A live, unlimited mapping of a product, which the test may change before it puts it. */
static inline mdl_mapping_put_t *new_mapping(apr_int64_t shop_id, const char *product,
                                             apr_array_header_t *files, apr_pool_t *p)
{
    mdl_mapping_put_t *put = apr_pcalloc(p, sizeof *put);

    put->shop_id = shop_id;
    put->mapping = (mdl_mapping_t){.storefront_product_id = product,
                                   .storefront_variant_ids = texts_of(p, 0),
                                   .file_ids = files,
                                   .download_type = MDL_DOWNLOAD_ZIP,
                                   .is_active = 1,
                                   .download_limit = -1,
                                   .access_days = -1,
                                   .content = MDL_CONTENT_LIVE};
    put->problem = apr_pcalloc(p, sizeof *put->problem);
    return put;
}

static inline apr_int64_t make_mapping(mdl_db_t *db, mdl_mapping_put_t *put, apr_pool_t *p)
{
    if (mdl_db_write(db, mdl_mapping_put_effect, put, p) != APR_SUCCESS) {
        printf("Bail out! mapping: %s\n", mdl_db_error(db));
        exit(2);
    }
    return put->mapping.id;
}

/** An assignment of n products without variants, each with a quantity of 1. */
static inline mdl_order_assign_t *new_assignment(apr_int64_t shop_id, const char *order_id,
                                                 apr_pool_t *p, int n, ...)
{
    mdl_order_assign_t *assign = apr_pcalloc(p, sizeof *assign);
    apr_array_header_t *items = apr_array_make(p, 4, sizeof(mdl_order_item_t));
    va_list args;

    va_start(args, n);
    for (int i = 0; i < n; i++) {
        APR_ARRAY_PUSH(items, mdl_order_item_t) = (mdl_order_item_t){
            .index = i,
            .storefront_product_id = va_arg(args, const char *),
            .storefront_variant_id = "",
            .quantity = 1};
    }
    va_end(args);
    *assign = (mdl_order_assign_t){.shop_id = shop_id,
                                   .storefront_order_id = order_id,
                                   .customer = {.storefront_customer_id = "77"},
                                   .items = items,
                                   .default_download_limit = 5,
                                   .mail_host = "shop.test",
                                   .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};
    return assign;
}

#endif
