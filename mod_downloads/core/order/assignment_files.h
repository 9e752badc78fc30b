/*
 * An assignment and the files that it gives: its own, and those of its packs.  A pack is read once,
 * however many assignments give it.
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
    int position; /* among the assignment's own files; 0: of a pack */
    const char *filename;
    const char *title;
    mdl_asset_status_t status;
    const char *sha256; /* NULL until ready; size is 0 */
    apr_int64_t size;
    int is_object;  /* whether an object has its bytes; set by mdl_assignment_files_locate */
    int is_missing; /* whether the object was not there when it was read last; likewise */
    apr_time_t updated_at;
    mdl_downloads_t downloads; /* resting and running are 0 unless read by mdl_order_find */
    int download_limit;        /* granted downloads included; 0: unlimited */
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
    const char *title;                 /* as the product was called when it was assigned */
    const char *note;                  /* the mapping's, if it was asked for; or NULL */
    int quantity;
    mdl_assignment_status_t status;
    apr_int64_t mapping_id;
    int mapping_active;  /* whether it serves new orders */
    int download_limit;  /* per file and unit of quantity; 0: unlimited, -1: the default */
    int fresh_downloads; /* mdl_allowance_renew counts */
    const char *packs;   /* ids of packs, separated by commas; NULL: none */
    mdl_download_type_t download_type;
    apr_time_t expires_at; /* 0: never */
    apr_time_t created_at;
    apr_array_header_t *files; /* mdl_order_file_t *; no file twice */
    int files_truncated;       /* there are more */
    int has_links;
    apr_array_header_t *links;        /* mdl_order_link_t * */
    int has_license_keys;             /* or is waiting for some */
    apr_array_header_t *license_keys; /* mdl_license_key_t */
    apr_int64_t license_keys_pending;
} mdl_assignment_t;

/** An assignment without content. */
mdl_assignment_t *mdl_assignment_make(apr_pool_t *p);

/** The most files that an order may have, and the most that are read at once.  A file counts once
    for each assignment that gives it. */
#define MDL_ORDER_FILES_MAX 5000

/** The same for links and for license keys. */
#define MDL_ORDER_LINKS_MAX        1000
#define MDL_ORDER_LICENSE_KEYS_MAX 5000

/** The most bytes of an order's links, addresses and titles together, and of its license keys when
    they are assigned. */
#define MDL_ORDER_TEXT_MAX (640 * 1024)

/** The most files that are read of a single assignment: as many as a mapping can list. */
#define MDL_ASSIGNMENT_FILES_MAX 62750

/**
 * Fills assignments (mdl_assignment_t *) with their files. own are the rows of a statement built on
 * files_of_a_rows, in the order of assignments, max + 1 at most. default_limit is the download
 * limit of mappings without one.
 *
 * Reads max files at most.  *whole gets how many assignments, from the first, got all their files.
 * All later ones get files_truncated, and no files but for the first of them.
 */
apr_status_t mdl_assignment_files_read(mdl_db_t *db, mdl_rows_t *own,
                                       const apr_array_header_t *assignments, int default_limit,
                                       int max, int *whole, apr_pool_t *p);

/** Sets is_object and is_missing of the files of assignments. */
apr_status_t mdl_assignment_files_locate(mdl_db_t *db, const apr_array_header_t *assignments,
                                         apr_pool_t *p);

#endif
