/*
 * Products as staff see them: mappings with the number of what they give, and of their purchases.
 */
#ifndef MDL_CORE_CATALOG_PRODUCT_LIST_H
#define MDL_CORE_CATALOG_PRODUCT_LIST_H

#include "core/catalog/mapping.h"

/** Purchases are counted up to this number of each kind. */
#define MDL_PRODUCT_COUNTED 1000

typedef struct {
    apr_int64_t id; /* of the mapping */
    const char *storefront_product_id;
    const char *title; /* or NULL */
    int is_active;
    int variants; /* 0: all of them */
    int files, packs, links, tags;
    int live, pinned;                /* purchases, by their content */
    const char *storefront_order_id; /* one of its orders; NULL: none, and in a list */
} mdl_product_t;

/** Effect: reads a page of mdl_product_t, the newest first; with a text those whose number or title
    begins with it, by these, at most one page. */
typedef struct {
    mdl_list_page_t page;
    const char *text; /* or NULL */
    int is_active;    /* -1: whether or not */
} mdl_product_list_t;
apr_status_t mdl_product_list(mdl_db_t *db, apr_pool_t *p, mdl_product_list_t *list);

/** The lists of a mapping's content. */
typedef enum {
    MDL_PRODUCT_FILE = 1,
    MDL_PRODUCT_PACK,
    MDL_PRODUCT_LINK,
    MDL_PRODUCT_TAG
} mdl_product_content_t;

/** Something that a mapping gives, or could give. */
typedef struct {
    mdl_product_content_t content;
    apr_int64_t id;
    const char *name;
    const char *detail; /* a file's name, a link's address, or NULL */
} mdl_product_item_t;

/** Effect: reads a mapping with the names of its content and, with a text, what else the shop has
    with that text in its name: of the newest thousand of each kind, up to ten.  Refused: 404
    mapping_not_found. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_mapping_t */
    const char *text;     /* or NULL */
    mdl_product_t *product;
    apr_array_header_t *contents; /* mdl_product_item_t */
    apr_array_header_t *matches;  /* the same */
} mdl_product_find_t;
apr_status_t mdl_product_find(mdl_db_t *db, apr_pool_t *p, mdl_product_find_t *find);

/** Reads the mapping of a product's number, that of the whole product if it has one.  APR_ENOENT:
    none. */
apr_status_t mdl_product_of_number(mdl_db_t *db, apr_int64_t shop_id, const char *number,
                                   mdl_mapping_t **mapping, apr_pool_t *p);

/** A mapping's list of one kind of content. */
apr_array_header_t **mdl_product_content(mdl_mapping_t *mapping, mdl_product_content_t content);

/** The most entries of a mapping's list. */
#define MDL_PRODUCT_CONTENT_MAX 250

/** Adds an entry to a list of content, unless it is there; 0: the list is full. */
int mdl_product_content_add(mdl_mapping_t *mapping, mdl_product_content_t content, apr_int64_t id);

#endif
