/*
 * What a shop's page and emails show of its brand: its logo and its accent colour, which is made
 * darker or lighter where it could not be read; and their languages.
 */
#ifndef MDL_CORE_SHOP_BRAND_H
#define MDL_CORE_SHOP_BRAND_H

#include <apr_pools.h>

#include "base/text/json.h"

#define MDL_ACCENT_RULE "A colour is # and six hexadecimal digits, such as #1d4ed8."

typedef struct {
    const char *accent;          /* "#1d4ed8"; NULL: that of the templates */
    const char *email_texts;     /* its own words in emails (email_texts.h); NULL: none */
    const char *languages;       /* mdl_language_list; NULL: all */
    const char *logo_sha256;     /* NULL: none */
    int logo_width, logo_height; /* pixels */
} mdl_brand_t;

/** The colour in lower case, in p; NULL for what is none. */
const char *mdl_accent(const char *text, apr_pool_t *p);

/** The colour as it can be read on white and white on it, and as it can be read on the page's dark
    ground: darker or lighter until the contrast is 4.5 (WCAG 2.2, 1.4.3). */
const char *mdl_accent_on_white(const char *accent, apr_pool_t *p);
const char *mdl_accent_on_dark(const char *accent, apr_pool_t *p);

/** The address of a logo. */
const char *mdl_logo_url(const char *public_url, const char *sha256, apr_pool_t *p);

/** The text of the page's style element, which has the accent; NULL: there is none. */
const char *mdl_brand_style(const mdl_brand_t *brand, apr_pool_t *p);

/**
 * Adds what templates get of it to an object:
 *   logo    {"url","width","height"} or null
 *   accent  {"light","dark"}, colours, or null
 */
void mdl_brand_json(mdl_json_t *to, const mdl_brand_t *brand, const char *public_url,
                    apr_pool_t *p);

#endif
