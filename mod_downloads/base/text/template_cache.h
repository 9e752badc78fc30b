/*
 * A cache of compiled templates (base/text/templates.h), which are compiled again when their files
 * change.  A cache belongs to one thread.
 */
#ifndef MDL_BASE_TEXT_TEMPLATE_CACHE_H
#define MDL_BASE_TEXT_TEMPLATE_CACHE_H

#include "base/text/templates.h"

typedef struct mdl_template_cache_t mdl_template_cache_t;

/** Makes a cache in p; the folder and the names must live as long. */
mdl_template_cache_t *mdl_template_cache_create(const char *folder, const char *const *names,
                                                apr_pool_t *p);

/** Makes the next calls check the files for changes. */
void mdl_template_cache_refresh(mdl_template_cache_t *cache);

/** The templates for a shop's customers, valid until the next call.  If they had to be read, their
    faults are appended to problems (mdl_templates_read). */
const mdl_templates_t *mdl_template_cache_get(mdl_template_cache_t *cache, apr_int64_t shop_id,
                                              apr_array_header_t *problems, apr_pool_t *p);

#endif
