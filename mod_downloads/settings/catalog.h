/*
 * What the pages of files, packs, links and categories share.
 */
#ifndef MDL_SETTINGS_CATALOG_H
#define MDL_SETTINGS_CATALOG_H

#include "base/text/json.h"
#include "core/entity_ref.h"
#include "settings/visit.h"

/** The entity of the path, in the version that the form's page has shown. */
mdl_entity_ref_t mdl_catalog_ref(mdl_visit_t *visit);

/** Checks the name or title that was typed; NULL: none was.  Refused: 400 invalid_title. */
apr_status_t mdl_catalog_check_name(mdl_visit_t *visit, const char *name);

/** Notes the id that the form's effect has given, for the audit. */
void mdl_catalog_note_id(mdl_visit_t *visit, apr_int64_t id);

/** Adds what has refused a deletion: the array "holders", each with order_id or mapping_id, and
    has_holders. */
void mdl_catalog_add_holders(mdl_json_t *to, const mdl_visit_t *visit);

/** Answers a form: redirects to the page of a list's ("links") entity; shows the form's page again,
    by send, if it was refused; or sends another failure. */
int mdl_catalog_done(mdl_visit_t *visit, apr_status_t rv, const char *list, apr_int64_t id,
                     int (*send)(mdl_visit_t *visit, int status));

/** Adds "products", the first of mappings (mdl_asset_user_t *) that have a file, a pack or a link,
    and how many more there are. */
void mdl_catalog_add_products(mdl_json_t *to, const apr_array_header_t *mappings, apr_pool_t *p);

#endif
