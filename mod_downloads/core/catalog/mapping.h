/*
 * A mapping: which content a storefront product delivers.  Its natural key is (shop, product, set
 * of variants); to write it again replaces it.
 */
#ifndef MDL_CORE_CATALOG_MAPPING_H
#define MDL_CORE_CATALOG_MAPPING_H

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"

/** How a customer gets several files. */
typedef enum { MDL_DOWNLOAD_ZIP, MDL_DOWNLOAD_FILES } mdl_download_type_t;
extern const char *const mdl_download_type_names[];

/** Whether an order follows the mapping's changes or keeps what it delivered at first. */
typedef enum { MDL_CONTENT_LIVE, MDL_CONTENT_PINNED } mdl_mapping_content_t;
extern const char *const mdl_mapping_content_names[];

typedef struct {
    apr_int64_t id;
    const char *storefront_product_id;
    apr_array_header_t
        *storefront_variant_ids;  /* const char *; as gids, no duplicates; NULL in a
                                     summary, whose other lists were not read either */
    apr_array_header_t *file_ids; /* apr_int64_t, no duplicates; NULL: none */
    apr_array_header_t *pack_ids; /* like file_ids; so are the next two */
    apr_array_header_t *link_ids;
    apr_array_header_t *license_key_tag_ids;
    mdl_download_type_t download_type;
    int is_active;
    int download_limit; /* -1: the shop's default, 0: unlimited */
    int access_days;    /* -1: for ever */
    mdl_mapping_content_t content;
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_mapping_t;

/** What the effects that write a mapping take and give. */
typedef struct {
    apr_int64_t shop_id;
    mdl_mapping_t mapping; /* in: all but times, and the id of replace alone; out: all */
    int created;           /* out */
    const apr_array_header_t *versions; /* of replace: as in mdl_entity_ref_t */
    mdl_problem_t *problem;
} mdl_mapping_put_t;

/** How many files a mapping may give, those of its packs included, each counted once. */
#define MDL_MAPPING_FILES_MAX 1000

/** Effect: creates the mapping, or replaces the one with its natural key.  Refused: 422
    unknown_reference with each faulty id, 422 too_many_files. */
apr_status_t mdl_mapping_put(mdl_db_t *db, apr_pool_t *p, mdl_mapping_put_t *put);

/** Effect: replaces the mapping with that id, its natural key too.  Refused: 404 mapping_not_found,
    409 mapping_exists when another has the key, 422 as above. */
apr_status_t mdl_mapping_replace(mdl_db_t *db, apr_pool_t *p, mdl_mapping_put_t *put);

/** Reads the mapping that put names, and keeps others from changing it until the commit.  Refused:
    404 mapping_not_found, 412 precondition_failed. */
apr_status_t mdl_mapping_lock(mdl_db_t *db, const mdl_mapping_put_t *put, mdl_mapping_t **mapping,
                              apr_pool_t *p);

/** Refuses what would make a mapping, the subject of the message's sentence, give so many files:
    422 too_many_files. */
apr_status_t mdl_mapping_too_large(mdl_problem_t *problem, const char *subject, apr_int64_t files,
                                   apr_pool_t *p);

/** Effect on an mdl_entity_ref_t: reads an mdl_mapping_t.  Refused: 404 mapping_not_found. */
apr_status_t mdl_mapping_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *find);

/** Effect on an mdl_entity_ref_t: it serves no new assignment.  Orders that were made under it keep
   what they have.  Refused: 404 mapping_not_found. */
apr_status_t mdl_mapping_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *find);

/** Effect that reads a page of mdl_mapping_t. */
typedef struct {
    mdl_list_page_t page;
    const char *storefront_product_id; /* filter; NULL for none */
} mdl_mapping_list_t;
apr_status_t mdl_mapping_list(mdl_db_t *db, apr_pool_t *p, mdl_mapping_list_t *list);

/** What an assignment needs of the mapping that serves it. */
typedef struct {
    apr_int64_t id;
    mdl_mapping_content_t content;
    int access_days; /* -1: for ever */
    mdl_download_type_t download_type;
    int download_limit; /* -1: the default */
    int has_license_keys;
    int has_links;
    const char *packs; /* that an assignment follows: ids, with commas between them, or NULL */
} mdl_mapping_match_t;

/** Asks for the active mapping of a product, one that names the variant before one for the whole
    product; it is not deleted before the transaction ends.  variant_id may be "". */
apr_status_t mdl_mapping_ask_match(mdl_db_t *db, apr_int64_t shop_id, const char *product_id,
                                   const char *variant_id, mdl_rows_t **rows, apr_pool_t *p);

/** Reads it; false if there is none. */
int mdl_mapping_read_match(mdl_rows_t *rows, mdl_mapping_match_t *match);

#endif
