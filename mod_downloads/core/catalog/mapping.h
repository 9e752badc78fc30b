/*
 * A mapping: which content a storefront product delivers.  Its natural key is (shop, product, set
 * of variants).
 */
#ifndef MDL_CORE_CATALOG_MAPPING_H
#define MDL_CORE_CATALOG_MAPPING_H

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"

/** How a customer gets several files. */
typedef enum { MDL_DOWNLOAD_ZIP, MDL_DOWNLOAD_FILES } mdl_download_type_t;
extern const char *const mdl_download_type_names[];

/** Whether orders follow changes of the mapping, or keep its content as it was when assigned. */
typedef enum { MDL_CONTENT_LIVE, MDL_CONTENT_PINNED } mdl_mapping_content_t;
extern const char *const mdl_mapping_content_names[];

typedef struct {
    apr_int64_t id;
    const char *storefront_product_id;
    const char *title; /* of the product, or NULL */
    const char *note;  /* for its buyers: plain text with line feeds, or NULL */
    apr_array_header_t *storefront_variant_ids; /* const char *, gids, no duplicates; NULL in a
                                                   summary, whose other lists are empty */
    apr_array_header_t *variant_titles;         /* const char *, of each of these; NULL: none */
    apr_array_header_t *file_ids;               /* apr_int64_t, no duplicates; NULL: none */
    apr_array_header_t *pack_ids;               /* like file_ids; so are the next two */
    apr_array_header_t *link_ids;
    apr_array_header_t *license_key_tag_ids;
    mdl_download_type_t download_type;
    int is_active;
    int download_limit; /* -1: the shop's default, 0: unlimited */
    int access_days;    /* -1: the shop's default, 0: for ever */
    mdl_mapping_content_t content;
    int fresh_downloads; /* whether a file's new bytes begin a new allowance of downloads */
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_mapping_t;

/** Argument of the effects that write a mapping. */
typedef struct {
    apr_int64_t shop_id;
    mdl_mapping_t mapping;              /* in: all but times; id only for replace; out: all */
    int created;                        /* out */
    const apr_array_header_t *versions; /* for replace: as in mdl_entity_ref_t */
    mdl_problem_t *problem;
} mdl_mapping_put_t;

/** The most files that a mapping may give, those of its packs included, each counted once. */
#define MDL_MAPPING_FILES_MAX 1000

/** Effect: creates the mapping, or replaces the mapping with its natural key.  Refused: 422
    unknown_reference with each faulty id, 422 too_many_files. */
apr_status_t mdl_mapping_put(mdl_db_t *db, apr_pool_t *p, mdl_mapping_put_t *put);

/** Effect: replaces the mapping with this id, including its natural key.  Refused: 404
    mapping_not_found, 409 mapping_exists when another mapping has the key, 422 as above. */
apr_status_t mdl_mapping_replace(mdl_db_t *db, apr_pool_t *p, mdl_mapping_put_t *put);

/** Reads the mapping with put's id, and locks it until the end of the transaction.  Refused: 404
    mapping_not_found, 412 precondition_failed. */
apr_status_t mdl_mapping_lock(mdl_db_t *db, const mdl_mapping_put_t *put, mdl_mapping_t **mapping,
                              apr_pool_t *p);

/** Refuses a mapping with so many files: 422 too_many_files.  The message begins with name. */
apr_status_t mdl_mapping_too_large(mdl_problem_t *problem, const char *name, apr_int64_t files,
                                   apr_pool_t *p);

/** Effect on an mdl_entity_ref_t: reads an mdl_mapping_t.  Refused: 404 mapping_not_found. */
apr_status_t mdl_mapping_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *find);

/** Effect on an mdl_entity_ref_t: deletes a mapping.  Orders that it served keep their content.
    Refused: 404 mapping_not_found. */
apr_status_t mdl_mapping_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *find);

/** Effect: reads a page of mdl_mapping_t; of a product those in a state among the next 1,000. */
typedef struct {
    mdl_list_page_t page;
    const char *storefront_product_id; /* filter; NULL: none */
    int is_active;                     /* -1: whether or not */
} mdl_mapping_list_t;
apr_status_t mdl_mapping_list(mdl_db_t *db, apr_pool_t *p, mdl_mapping_list_t *list);

/** What an assignment needs to know of its mapping. */
typedef struct {
    apr_int64_t id;
    const char *title; /* with that of the variant; NULL: none */
    mdl_mapping_content_t content;
    int access_days; /* or the shop's default; -1 or 0: for ever */
    mdl_download_type_t download_type;
    int download_limit; /* -1: the default */
    int default_limit;  /* the shop's; -1: the service's */
    int has_license_keys;
    int has_links;
    const char *packs; /* ids of packs, separated by commas, that an assignment follows; or NULL */
} mdl_mapping_match_t;

/** Asks for the active mapping of a product: of the variant, or else of the whole product.  It
    can't be deleted until the end of the transaction. variant_id may be "". */
apr_status_t mdl_mapping_ask_match(mdl_db_t *db, apr_int64_t shop_id, const char *product_id,
                                   const char *variant_id, mdl_rows_t **rows, apr_pool_t *p);

/** Reads it; false if there is none. */
int mdl_mapping_read_match(mdl_rows_t *rows, mdl_mapping_match_t *match);

#endif
