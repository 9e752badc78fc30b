/*
 * The folder of templates: the general ones, in several languages, and those of single shops.
 *
 *   en.words             what the templates say in English, and in languages that lack a word
 *   de.words             the same in German; any tag of RFC 5646, "de-AT" as well
 *   shop-7/de.words      what shop 7 says instead
 *   page.html            for all languages if it has words itself, else for that of its html
 * element page.de.html         goes before page.html for customers who read German shop-7/page.html
 * for shop 7, replaces page.html and page.de.html shop-7/page.de.html  if shop-7 has no page.html,
 * replaces page.de.html alone month.mustache       a partial, {{> month}}; month.de.mustache and
 * those of shops are chosen in the same way, also for the general templates that shop 7 gets
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
 * Reads the templates of these names (ended by NULL; "….html" is HTML, all else text) and the
 * partials in a folder, into p; other files are ignored.  For each file that can't be used, and for
 * each name without a file that has no language, and for en.words, a sentence (const char *) is
 * appended to problems that says what is wrong and where; the other templates can be used
 * nevertheless.  The set doesn't change afterwards, and several threads may use it.
 */
mdl_templates_t *mdl_templates_read(const char *folder, const char *const *names,
                                    apr_array_header_t *problems, apr_pool_t *p);

/** The same with the templates of one shop alone besides the general ones; 0: of none. */
mdl_templates_t *mdl_templates_read_shop(const char *folder, apr_int64_t shop_id,
                                         const char *const *names, apr_array_header_t *problems,
                                         apr_pool_t *p);

/** The same for the folder's own folder "settings", of which no shop has another. */
mdl_templates_t *mdl_templates_read_settings(const char *folder, const char *const *names,
                                             apr_array_header_t *problems, apr_pool_t *p);

/** The name of a shop's folder, "shop-7". */
const char *mdl_templates_shop_folder(apr_int64_t shop_id, apr_pool_t *p);

/**
 * The template of that name ("page.html") for a customer of a shop (0: the shop is not known), in
 * the first of the languages (const char *, tags of RFC 5646 in either case, also with "_") in
 * which it exists, by the lookup of RFC 4647 section 3.4: "de-AT" is also served by "de".  NULL
 * when it exists in none of them.  *language gets the tag in the name of its
 * file or words.
 */
const mdl_template_t *mdl_templates_match(const mdl_templates_t *templates, const char *name,
                                          apr_int64_t shop_id, const apr_array_header_t *languages,
                                          const char **language, apr_pool_t *p);

/**
 * The same, but with the template without a language when no language fits, and NULL only when that
 * one could not be read.  *language is then that of its words, or of its html element, or "".
 * languages may be NULL.
 */
const mdl_template_t *mdl_templates_get(const mdl_templates_t *templates, const char *name,
                                        apr_int64_t shop_id, const apr_array_header_t *languages,
                                        const char **language, apr_pool_t *p);

#endif
