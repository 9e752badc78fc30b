/*
 * The folder of templates: general templates, in several languages, and those of single shops.
 *
 *   en.words             the texts in English, also for words that another language lacks
 *   de.words             the texts in German; any tag of RFC 5646, such as "de-AT"
 *   shop-7/de.words      shop 7's own texts
 *   page.html            for every language if it has words, else for that of its html element
 *   page.de.html         replaces page.html for customers who read German
 *   shop-7/page.html     for shop 7, replaces page.html and page.de.html
 *   shop-7/page.de.html  if there is no shop-7/page.html, replaces only page.de.html
 *   month.mustache       a partial, {{> month}}; month.de.mustache and shops' partials are chosen
 * in the same way, also for the general templates as shop 7 gets them
 *
 * What the templates can show: docs/templates.md.
 */
#ifndef MDL_BASE_TEXT_TEMPLATES_H
#define MDL_BASE_TEXT_TEMPLATES_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "base/text/template.h"

typedef struct mdl_templates_t mdl_templates_t;

/**
 * Reads the named templates (names ends in NULL; "….html" is HTML, all else text), partials and
 * words of a folder into p; other files are ignored.  For each unusable file, each name that has no
 * file without a language, and a missing en.words, a sentence (const char *) is appended to
 * problems; the other templates can still be used.  The result is immutable and may be used by
 * several threads.
 */
mdl_templates_t *mdl_templates_read(const char *folder, const char *const *names,
                                    apr_array_header_t *problems, apr_pool_t *p);

/** Reads the general templates and those of one shop; 0: of none. */
mdl_templates_t *mdl_templates_read_shop(const char *folder, apr_int64_t shop_id,
                                         const char *const *names, apr_array_header_t *problems,
                                         apr_pool_t *p);

/** Reads the templates in the subfolder "settings", which shops cannot replace. */
mdl_templates_t *mdl_templates_read_settings(const char *folder, const char *const *names,
                                             apr_array_header_t *problems, apr_pool_t *p);

/** The name of a shop's folder, "shop-7". */
const char *mdl_templates_shop_folder(apr_int64_t shop_id, apr_pool_t *p);

/**
 * The template of a name ("page.html") for a shop's customers (0: shop unknown), in the first of
 * the languages (const char *, tags of RFC 5646 in either case, also with "_") in which it exists,
 * by the lookup of RFC 4647 section 3.4: "de" also serves "de-AT".  NULL if it exists in none of
 * them.  *language gets the tag in the name of its file or words.
 */
const mdl_template_t *mdl_templates_match(const mdl_templates_t *templates, const char *name,
                                          apr_int64_t shop_id, const apr_array_header_t *languages,
                                          const char **language, apr_pool_t *p);

/**
 * As mdl_templates_match, but falls back to the template without a language, and returns NULL only
 * if that could not be read.  *language is then that of its words, or of its html element, or "".
 * languages may be NULL.
 */
const mdl_template_t *mdl_templates_get(const mdl_templates_t *templates, const char *name,
                                        apr_int64_t shop_id, const apr_array_header_t *languages,
                                        const char **language, apr_pool_t *p);

/** The languages (const char *, sorted) in which a shop's customers can get a template. */
apr_array_header_t *mdl_templates_languages(const mdl_templates_t *templates, const char *name,
                                            apr_int64_t shop_id, apr_pool_t *p);

#endif
