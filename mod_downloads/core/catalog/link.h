/*
 * A link: a web page that mappings deliver as content.
 */
#ifndef MDL_CORE_CATALOG_LINK_H
#define MDL_CORE_CATALOG_LINK_H

#include "core/entity_ref.h"
#include "core/list_page.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    const char *title;
    const char *url;
    apr_time_t created_at;
    apr_time_t updated_at;
} mdl_link_t;

#define MDL_LINK_URL_MAX 2048 /* characters */

/** Whether a text can be a link's URL: absolute, https, with a host, without user or password. */
int mdl_link_url_valid(const char *url);

/** Argument of create and change.  Change, find and delete are refused with 404 link_not_found. */
typedef struct {
    mdl_entity_ref_t ref; /* entity: mdl_link_t */
    const char *title;
    const char *url;
} mdl_link_edit_t;

apr_status_t mdl_link_create(mdl_db_t *db, apr_pool_t *p, mdl_link_edit_t *edit);

/** Changes the members that are not NULL. */
apr_status_t mdl_link_change(mdl_db_t *db, apr_pool_t *p, mdl_link_edit_t *edit);

/** Effect on an mdl_entity_ref_t: reads a link. */
apr_status_t mdl_link_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect on an mdl_entity_ref_t: deletes a link.  Refused: 409 link_in_use with the mappings and
    orders that have it. */
apr_status_t mdl_link_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref);

/** Effect: reads a page (mdl_list_page_t) of mdl_link_t. */
apr_status_t mdl_link_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page);

#endif
