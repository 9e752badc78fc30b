/*
 * An assignment and the files that it gives: its own, and those of packs, which are read once
 * however many assignments give the pack.
 */
#ifndef MDL_CORE_ORDER_ASSIGNMENT_FILES_H
#define MDL_CORE_ORDER_ASSIGNMENT_FILES_H

#include "core/catalog/license_seal.h"
#include "core/catalog/mapping.h"
#include "core/download/entitlement.h"

/** A file that an assignment gives. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id;
    const char *filename;
    const char *title;
    const char *content_type; /* NULL, as size and sha256, until ready */
    mdl_asset_status_t status;
    const char *sha256;
    apr_int64_t size;
    apr_time_t updated_at;
    mdl_downloads_t downloads; /* resting and running are 0 unless it is found with its order */
    int download_limit;        /* with what was granted extra; 0: unlimited */
} mdl_order_file_t;

/** A link that an assignment gives. */
typedef struct {
    apr_int64_t link_id;
    const char *title;
    const char *url;
} mdl_order_link_t;

typedef struct {
    apr_int64_t id;
    apr_int64_t order_id;
    const char *storefront_product_id;
    const char *storefront_variant_id; /* "" for none */
    int quantity;
    mdl_assignment_status_t status;
    apr_int64_t mapping_id;
    int mapping_active; /* whether new orders are served by it */
    int download_limit; /* of each file and for each of quantity; 0: unlimited, -1: the default */
    const char *packs;  /* ids of packs, with commas between them, or NULL */
    mdl_download_type_t download_type;
    apr_time_t expires_at; /* 0: never */
    apr_time_t created_at;
    apr_array_header_t *files; /* mdl_order_file_t *; no file twice */
    int files_truncated;       /* there are more */
    int has_links;
    apr_array_header_t *links;        /* mdl_order_link_t * */
    int has_license_keys;             /* or waits for some */
    apr_array_header_t *license_keys; /* mdl_license_key_t */
    apr_int64_t license_keys_pending;
} mdl_assignment_t;

/** An assignment without content. */
mdl_assignment_t *mdl_assignment_make(apr_pool_t *p);

/** How many files an order may have, a file counted for each of its assignments; and how many are
    read at once. */
#define MDL_ORDER_FILES_MAX 5000

/** The same of links, a link counted for each of its assignments, and of license keys. */
#define MDL_ORDER_LINKS_MAX        1000
#define MDL_ORDER_LICENSE_KEYS_MAX 5000

/** How many bytes the addresses and titles of an order's links have together at most, and, when
   they are assigned, its license keys. */
#define MDL_ORDER_TEXT_MAX (640 * 1024)

/** How many files of one assignment are read when it is asked for alone: what the lists of a
   mapping can hold. */
#define MDL_ASSIGNMENT_FILES_MAX 62750

/**
 * Fills assignments (mdl_assignment_t *) with their files.  own are the rows of a statement that
 * has files_of_a_rows, in the order of assignments, and one row more than MDL_ORDER_FILES_MAX at
 * most. default_limit is the download limit of mappings without one.
 *
 * No more than max files are read.  *whole gets the number of assignments, from the
 * first one on, that have all their files; the one after them has files_truncated, the rest no
 * file.
 */
apr_status_t mdl_assignment_files_read(mdl_db_t *db, mdl_rows_t *own,
                                       const apr_array_header_t *assignments, int default_limit,
                                       int max, int *whole, apr_pool_t *p);

#endif
