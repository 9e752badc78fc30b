/*
 * A pack: a named list of files, which mappings deliver together and in order.
 */
#ifndef MDL_CORE_CATALOG_PACK_H
#define MDL_CORE_CATALOG_PACK_H

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"

#define MDL_PACK_FILES_MAX 250

typedef struct {
    apr_int64_t id;
    const char *name;
    apr_array_header_t *file_ids; /* apr_int64_t, no duplicates; NULL in a summary */
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_pack_t;

/** Argument of create and change.  Refused: 422 unknown_reference with each faulty id.  Change,
    find and delete are also refused with 404 pack_not_found. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_pack_t */
    const char *name;
    const apr_array_header_t *file_ids;
} mdl_pack_edit_t;

apr_status_t mdl_pack_create(mdl_db_t *db, apr_pool_t *p, mdl_pack_edit_t *edit);

/** Changes the members that are not NULL.  Refused: 422 too_many_files when a mapping with the pack
    would give too many files; at most 500 mappings are checked. */
apr_status_t mdl_pack_change(mdl_db_t *db, apr_pool_t *p, mdl_pack_edit_t *edit);

/** Effect on an mdl_entity_ref_t: reads a pack. */
apr_status_t mdl_pack_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect on an mdl_entity_ref_t: deletes a pack.  Refused: 409 pack_in_use with the mappings and
    orders that have it. */
apr_status_t mdl_pack_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect: reads a page (mdl_list_page_t) of mdl_pack_t. */
apr_status_t mdl_pack_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page);

#endif
