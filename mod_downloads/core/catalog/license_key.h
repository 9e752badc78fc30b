/*
 * Lists the license keys of a tag, finds one by its whole text, and deletes one.
 */
#ifndef MDL_CORE_CATALOG_LICENSE_KEY_H
#define MDL_CORE_CATALOG_LICENSE_KEY_H

#include "core/catalog/license_seal.h"
#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"

typedef enum {
    MDL_LICENSE_AVAILABLE,
    MDL_LICENSE_ASSIGNED,
    MDL_LICENSE_WITHDRAWN /* above the quantity of its assignment */
} mdl_license_status_t;
extern const char *const mdl_license_status_names[];

typedef struct {
    apr_int64_t id;
    mdl_license_key_t key;
    mdl_license_status_t status;
    apr_int64_t assignment_id;       /* 0: in stock, and the next four are unset */
    const char *storefront_order_id; /* or NULL */
    const char *customer;            /* of the order: the address, else the id; NULL: a guest's */
    apr_time_t assigned_at;
    apr_time_t withdrawn_at;
    apr_time_t created_at;
} mdl_license_entry_t;

/** Effect: reads a page of a tag's keys (mdl_license_entry_t).  Refused: 404
    license_key_tag_not_found. */
typedef struct {
    mdl_list_page_t page;
    mdl_entity_ref_t ref; /* the tag */
    const char *status;   /* NULL: all */
} mdl_license_page_t;
apr_status_t mdl_license_page(mdl_db_t *db, apr_pool_t *p, mdl_license_page_t *list);

/** Effect: finds a key of a tag by its whole text; APR_ENOENT: there is none.  Refused and
    APR_EINVAL as by mdl_license_add. */
typedef struct {
    mdl_entity_ref_t ref; /* the tag */
    const mdl_secret_t *secret;
    const char *text;
    mdl_license_entry_t *found; /* out */
} mdl_license_find_t;
apr_status_t mdl_license_find(mdl_db_t *db, apr_pool_t *p, mdl_license_find_t *find);

/** A key that a search has found. */
typedef struct {
    apr_int64_t id;
    apr_int64_t tag_id;
    const char *tag; /* its name */
    mdl_license_status_t status;
    const char *storefront_order_id; /* or NULL */
} mdl_license_found_t;

#define MDL_LICENSE_TAGS_SEARCHED 1000

/** Finds the keys with a whole text among the shop's newest MDL_LICENSE_TAGS_SEARCHED tags. */
typedef struct {
    apr_int64_t shop_id;
    const mdl_secret_t *secret;
    const char *text;
    int limit;
    apr_array_header_t *found; /* out: mdl_license_found_t * */
} mdl_license_search_t;
apr_status_t mdl_license_search(mdl_db_t *db, apr_pool_t *p, mdl_license_search_t *search);

/** How many orders are counted that wait for keys of a tag. */
#define MDL_LICENSE_OWED_MAX 100

/** Counts the orders that wait for keys of tags, by tag_ids (apr_int64_t).  *owed gets
    an apr_int64_t for each, in their order: at most MDL_LICENSE_OWED_MAX + 1. */
apr_status_t mdl_license_owed(mdl_db_t *db, const apr_array_header_t *tag_ids, apr_int64_t **owed,
                              apr_pool_t *p);

/** Effect: deletes a key that no customer has.  Refused: 404 license_key_tag_not_found and
    license_key_not_found, 409 license_key_assigned. */
typedef struct {
    mdl_entity_ref_t ref; /* the tag */
    apr_int64_t id;
} mdl_license_delete_t;
apr_status_t mdl_license_delete(mdl_db_t *db, apr_pool_t *p, mdl_license_delete_t *removal);

#endif
