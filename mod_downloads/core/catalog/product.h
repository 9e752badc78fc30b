/*
 * How a storefront's product is called.
 */
#ifndef MDL_CORE_CATALOG_PRODUCT_H
#define MDL_CORE_CATALOG_PRODUCT_H

#include "base/text/json.h"
#include "core/shop/shop.h"

/** The most characters of a product's or a variant's title, and of the note to its buyers. */
#define MDL_PRODUCT_TITLE_MAX 255
#define MDL_PRODUCT_NOTE_MAX  1000

/** The most downloads of a file and days of access that a mapping can give. */
#define MDL_PRODUCT_DOWNLOADS_MAX MDL_SHOP_DOWNLOADS_MAX
#define MDL_PRODUCT_DAYS_MAX      MDL_SHOP_DAYS_MAX

/** The number in a product's gid, as text. */
const char *mdl_product_number(const char *product_id);

/** The title, or "Product 1018" if it is NULL: the number is that of the gid. */
const char *mdl_product_title(const char *title, const char *product_id, apr_pool_t *p);

/** The title as people gave it; NULL if it is NULL or mdl_product_title made it of the number. */
const char *mdl_product_given_title(const char *title, const char *product_id, apr_pool_t *p);

/** Adds "title", as people gave it or null, and "product_number", for the partial product_title. */
void mdl_product_json(mdl_json_t *to, const char *title, const char *product_id, apr_pool_t *p);

/** Adds a text as an array of {"line"}; null if the text is NULL. */
void mdl_product_json_note(mdl_json_t *to, const char *name, const char *note, apr_pool_t *p);

#endif
