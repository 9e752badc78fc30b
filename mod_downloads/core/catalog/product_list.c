#include "core/catalog/product_list.h"

#include <string.h>

#include <apr_strings.h>

#include "core/catalog/product.h"
#include "core/identifier.h"
#include "core/ids.h"

#define AFTER_ALL "\xf4\x8f\xbf\xbf" /* U+10FFFF */

static mdl_product_t *product_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_product_t *product = apr_pcalloc(p, sizeof *product);

    MDL_READ(row, product, product, id, storefront_product_id, title);
    product->is_active = (int)MDL_INT(row, product, is_active);
    product->variants = (int)MDL_INT(row, product, variants);
    product->files = (int)MDL_INT(row, product, files);
    product->packs = (int)MDL_INT(row, product, packs);
    product->links = (int)MDL_INT(row, product, links);
    product->tags = (int)MDL_INT(row, product, tags);
    product->live = (int)MDL_INT(row, product, live);
    product->pinned = (int)MDL_INT(row, product, pinned);
    return product;
}

static apr_status_t products_of_number(mdl_db_t *db, const mdl_product_list_t *list,
                                       mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(
        db, rows, p,
        MDL_Q(PRODUCT_PAGE_OF_NUMBER, .shop_id = list->page.shop_id, .prefix = list->text,
              .prefix_end = apr_pstrcat(p, list->text, ":", NULL), .is_active = list->is_active,
              .limit = list->page.limit, .most = MDL_PRODUCT_COUNTED));
}

static apr_status_t products_of_title(mdl_db_t *db, const mdl_product_list_t *list,
                                      mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(db, rows, p,
                         MDL_Q(PRODUCT_PAGE_OF_TITLE, .shop_id = list->page.shop_id,
                               .prefix = list->text,
                               .prefix_end = apr_pstrcat(p, list->text, AFTER_ALL, NULL),
                               .is_active = list->is_active, .limit = list->page.limit,
                               .most = MDL_PRODUCT_COUNTED));
}

static apr_status_t products_newest(mdl_db_t *db, const mdl_product_list_t *list, mdl_rows_t **rows,
                                    apr_pool_t *p)
{
    const mdl_list_page_t *page = &list->page;

    return list->is_active < 0
               ? mdl_db_select(db, rows, p,
                               MDL_Q(PRODUCT_PAGE, .shop_id = page->shop_id, .before = page->before,
                                     .limit = page->limit, .most = MDL_PRODUCT_COUNTED))
               : mdl_db_select(db, rows, p,
                               MDL_Q(PRODUCT_PAGE_OF_STATE, .shop_id = page->shop_id,
                                     .is_active = list->is_active, .before = page->before,
                                     .limit = page->limit, .most = MDL_PRODUCT_COUNTED));
}

static void products_read(mdl_rows_t *rows, apr_array_header_t *found, apr_pool_t *p)
{
    while (mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(found, mdl_product_t *) = product_of_row(rows, p);
    }
}

/* Digits are a number, or else the beginning of a title. */
apr_status_t mdl_product_list(mdl_db_t *db, apr_pool_t *p, mdl_product_list_t *list)
{
    int is_number = list->text != NULL && mdl_identifier_is_digits(list->text);
    mdl_rows_t *rows;
    apr_status_t rv;

    list->page.found = apr_array_make(p, list->page.limit, sizeof(mdl_product_t *));
    rv = list->text == NULL ? products_newest(db, list, &rows, p)
         : is_number        ? products_of_number(db, list, &rows, p)
                            : products_of_title(db, list, &rows, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    products_read(rows, list->page.found, p);
    if (is_number && list->page.found->nelts == 0 &&
        (rv = products_of_title(db, list, &rows, p)) == APR_SUCCESS) {
        products_read(rows, list->page.found, p);
    }
    return rv;
}

static apr_array_header_t *items_read(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *items = apr_array_make(p, 8, sizeof(mdl_product_item_t));

    while (mdl_rows_next(rows)) {
        mdl_product_item_t *item = &APR_ARRAY_PUSH(items, mdl_product_item_t);

        item->content = (mdl_product_content_t)MDL_INT(rows, product_matches, content);
        MDL_READ(rows, product_matches, item, id, name, detail);
    }
    return items;
}

apr_status_t mdl_product_find(mdl_db_t *db, apr_pool_t *p, mdl_product_find_t *find)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_mapping_find(db, p, &find->ref);

    if (rv != APR_SUCCESS ||
        (rv = mdl_db_select_one(
             db, &row, p, MDL_Q(PRODUCT_BY_ID, .id = find->ref.id, .most = MDL_PRODUCT_COUNTED))) !=
            APR_SUCCESS) {
        return rv;
    }
    find->product = product_of_row(row, p);
    find->product->storefront_order_id = MDL_TEXT(row, product_by_id, storefront_order_id);
    if ((rv = mdl_db_select(db, &row, p, MDL_Q(PRODUCT_CONTENTS, find->ref.id))) != APR_SUCCESS) {
        return rv;
    }
    find->contents = items_read(row, p);
    find->matches = apr_array_make(p, 1, sizeof(mdl_product_item_t));
    if (find->text != NULL &&
        (rv = mdl_db_select(db, &row, p,
                            MDL_Q(PRODUCT_MATCHES, .shop_id = find->ref.shop_id,
                                  .text = find->text))) == APR_SUCCESS) {
        find->matches = items_read(row, p);
    }
    return rv;
}

apr_status_t mdl_product_of_number(mdl_db_t *db, apr_int64_t shop_id, const char *number,
                                   mdl_mapping_t **mapping, apr_pool_t *p)
{
    mdl_product_list_t list = {
        .page = {.shop_id = shop_id, .limit = 50}, .text = number, .is_active = -1};
    mdl_problem_t problem = {0};
    mdl_entity_ref_t find = {.shop_id = shop_id, .problem = &problem};
    apr_status_t rv = mdl_product_list(db, p, &list);

    for (int i = 0; rv == APR_SUCCESS && i < list.page.found->nelts; i++) {
        const mdl_product_t *each = APR_ARRAY_IDX(list.page.found, i, const mdl_product_t *);

        if (strcmp(mdl_product_number(each->storefront_product_id), number) == 0 &&
            (find.id == 0 || each->variants == 0)) {
            find.id = each->id;
        }
    }
    if (rv != APR_SUCCESS || find.id == 0) {
        return rv != APR_SUCCESS ? rv : APR_ENOENT;
    }
    rv = mdl_mapping_find(db, p, &find);
    *mapping = (mdl_mapping_t *)find.entity;
    return rv;
}

apr_array_header_t **mdl_product_content(mdl_mapping_t *mapping, mdl_product_content_t content)
{
    return content == MDL_PRODUCT_FILE   ? &mapping->file_ids
           : content == MDL_PRODUCT_PACK ? &mapping->pack_ids
           : content == MDL_PRODUCT_LINK ? &mapping->link_ids
                                         : &mapping->license_key_tag_ids;
}

int mdl_product_content_add(mdl_mapping_t *mapping, mdl_product_content_t content, apr_int64_t id)
{
    apr_array_header_t *list = *mdl_product_content(mapping, content);

    if (mdl_ids_has(list, id)) {
        return 1;
    }
    if (list->nelts >= MDL_PRODUCT_CONTENT_MAX) {
        return 0;
    }
    APR_ARRAY_PUSH(list, apr_int64_t) = id;
    return 1;
}
