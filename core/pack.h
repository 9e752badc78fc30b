/*
 * A pack: files under one name, which mappings deliver together and in order.
 */
#ifndef MDL_CORE_PACK_H
#define MDL_CORE_PACK_H

#include "core/page.h"
#include "core/refusal.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    const char *name;
    apr_array_header_t *file_ids; /* apr_int64_t, no duplicates */
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_pack_t;

/** What the effects on one pack take and give.  Refused: 404 pack_not_found. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t id;                     /* of all but create */
    const char *name;                   /* of create and change */
    const apr_array_header_t *file_ids; /* likewise */
    mdl_refusal_t *refusal;
    mdl_pack_t *pack; /* out, of all but delete */
} mdl_pack_edit_t;

/** Refused: 422 unknown_reference with each faulty id. */
apr_status_t mdl_pack_create(mdl_db_t *db, apr_pool_t *p, void *arg);

/** Reads only. */
apr_status_t mdl_pack_find(mdl_db_t *db, apr_pool_t *p, void *arg);

/** What is NULL stays.  Refused: as mdl_pack_create. */
apr_status_t mdl_pack_change(mdl_db_t *db, apr_pool_t *p, void *arg);

/** Refused: 409 pack_in_use with the mappings and orders that hold it. */
apr_status_t mdl_pack_delete(mdl_db_t *db, apr_pool_t *p, void *arg);

/** Effect that reads a page (mdl_page_t) of mdl_pack_t. */
apr_status_t mdl_pack_page(mdl_db_t *db, apr_pool_t *p, void *arg);

#endif
