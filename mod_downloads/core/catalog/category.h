/*
 * A category: a name by which a shop sorts its assets.
 */
#ifndef MDL_CORE_CATALOG_CATEGORY_H
#define MDL_CORE_CATALOG_CATEGORY_H

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    const char *name;
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_category_t;

/** Argument of create and change.  Change, find and delete refuse with 404 category_not_found. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_category_t */
    const char *name;
} mdl_category_edit_t;

apr_status_t mdl_category_create(mdl_db_t *db, apr_pool_t *p, mdl_category_edit_t *edit);

/** A name of NULL changes nothing. */
apr_status_t mdl_category_change(mdl_db_t *db, apr_pool_t *p, mdl_category_edit_t *edit);

/** Effect on an mdl_entity_ref_t: reads a category. */
apr_status_t mdl_category_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect on an mdl_entity_ref_t: deletes a category; its assets and uploads lose it. */
apr_status_t mdl_category_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Checks that the shop has a category (0: none), and prevents its deletion until the end of the
    transaction.  Refused: 422 unknown_reference at /category_id. */
apr_status_t mdl_category_hold(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t category_id,
                               mdl_problem_t *problem, apr_pool_t *p);

/** Effect that reads a page (mdl_list_page_t) of mdl_category_t. */
apr_status_t mdl_category_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page);

#endif
