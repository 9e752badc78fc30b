/*
 * What the list of products and a product's page share.
 */
#ifndef MDL_SETTINGS_PRODUCTS_H
#define MDL_SETTINGS_PRODUCTS_H

#include "base/text/json.h"
#include "core/catalog/product_list.h"
#include "settings/visit.h"

/** Adds how a product is called, what it gives and how many purchases there are. */
void mdl_products_add(mdl_json_t *to, const mdl_product_t *product, apr_pool_t *p);

/** Reads the field "title" into a mapping; a fault is in the visit's problem. */
apr_status_t mdl_products_read_title(mdl_visit_t *visit, mdl_mapping_t *mapping);

/** Reads the field "variants": a line for each, with its number and its title. */
apr_status_t mdl_products_read_variants(mdl_visit_t *visit, mdl_mapping_t *mapping);

/** Reads the field "item": a kind of content, and an id; a fault is in the visit's problem. */
apr_status_t mdl_products_read_item(mdl_visit_t *visit, mdl_product_content_t *content,
                                    apr_int64_t *id);

/** Adds what it names to a mapping. */
apr_status_t mdl_products_add_content(mdl_visit_t *visit, mdl_mapping_t *mapping);

/** Refuses an entry more than a list may have. */
apr_status_t mdl_products_refuse_full(mdl_visit_t *visit);

#endif
