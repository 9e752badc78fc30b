/*
 * Templates (base/text/templates.h) that are compiled once, and again when a file of theirs has
 * changed.  A cache belongs to one thread.
 */
#ifndef MDL_BASE_TEXT_TEMPLATE_CACHE_H
#define MDL_BASE_TEXT_TEMPLATE_CACHE_H

#include "base/text/templates.h"

typedef struct mdl_template_cache_t mdl_template_cache_t;

/** Makes a cache in p; the folder and the names must live as long. */
mdl_template_cache_t *mdl_template_cache_create(const char *folder, const char *const *names,
                                                apr_pool_t *p);

/** Has the next calls see what was edited until now. */
void mdl_template_cache_refresh(mdl_template_cache_t *cache);

/** The templates that a shop's customers get, valid until the next call.  If they had to be read,
    what is wrong with them is appended to problems (mdl_templates_read). */
const mdl_templates_t *mdl_template_cache_get(mdl_template_cache_t *cache, apr_int64_t shop_id,
                                              apr_array_header_t *problems, apr_pool_t *p);

#endif
