/*
 * A category: a name by which a shop sorts its assets.
 */
#ifndef MDL_CORE_CATEGORY_H
#define MDL_CORE_CATEGORY_H

#include "core/page.h"
#include "core/refusal.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    const char *name;
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_category_t;

/** What the effects on one category take and give.  Refused: 404 category_not_found. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t id;   /* of all but create */
    const char *name; /* of create and change */
    mdl_refusal_t *refusal;
    mdl_category_t *category; /* out, of all but delete */
} mdl_category_edit_t;

apr_status_t mdl_category_create(mdl_db_t *db, apr_pool_t *p, void *arg);

/** Reads only. */
apr_status_t mdl_category_find(mdl_db_t *db, apr_pool_t *p, void *arg);

/** A name of NULL changes nothing. */
apr_status_t mdl_category_change(mdl_db_t *db, apr_pool_t *p, void *arg);

/** Its assets and uploads have no category from then on. */
apr_status_t mdl_category_delete(mdl_db_t *db, apr_pool_t *p, void *arg);

/** Effect that reads a page (mdl_page_t) of mdl_category_t. */
apr_status_t mdl_category_page(mdl_db_t *db, apr_pool_t *p, void *arg);

#endif
